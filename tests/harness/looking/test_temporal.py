"""The influence on one action: end to end on short tasks, and against brute force."""

from pathlib import Path

import numpy as np
import pytest
import torch

from algos import ppo
from filters.registry import make
from harness import diagnose
from harness.looking.temporal import embed, influence_on_action
from harness.rounds.training import Training
from harness.tasks.task import Task
from tests.harness.looking.found import LAKE, check_figures, read


def test_a_temporal_analysis_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--target", "action", "--observation", "14", "--action", "2", "--round", "2", "--out", str(tmp_path)]
    assert diagnose.main([*LAKE, *words]) == 0
    assert "roughness (50 neighbours)" in capsys.readouterr().out
    folder = tmp_path / "smoke-FrozenLake-v1" / "iif" / "seed-0" / "action-round-2"
    check_figures(folder, {"rounds", "top-records"})
    found = read(folder / "temporal.json")
    assert [line["round"] for line in found["rounds"]] == [1, 2]
    assert found["observation"] == [0.0] * 14 + [1.0, 0.0]
    assert found["rounds"][0]["probability"] == pytest.approx(0.25, abs=0.02), "the policy starts nearly uniform"
    assert set(found["rounds"][0]["roughness"]) == {"20", "50", "100"}
    influences = [facts["influence"] for facts in found["top"]["1"]]
    assert influences == sorted(influences, reverse=True)


def test_a_state_picked_from_the_rollout(tmp_path: Path) -> None:
    words = ["--target", "action", "--pick", "3", "--round", "1", "--out", str(tmp_path)]
    assert diagnose.main(["--task", "smoke-MiniGrid", *words]) == 0
    folder = tmp_path / "smoke-MiniGrid-v1" / "iif" / "seed-0" / "action-round-1"
    found = read(folder / "temporal.json")
    assert np.shape(found["observation"]) == (7, 7, 3)
    assert found["rounds"][0]["visits_of_pair"] >= 1


def open_training() -> Training:
    args = ppo.Args(env_id="CartPole-v1", num_envs=2, num_steps=8, minibatch_size=8, total_steps=16, hidden=(5, 3))
    return Training(Task("test/v1", "", args, random=0.0, solved=1.0, returns=(-500.0, 500.0)), make("none"), seed=0)


def test_influence_on_an_action_equals_brute_force() -> None:
    training = open_training()
    moment = training.collect()
    obs, action = torch.tensor([[0.1, -0.2, 0.3, 0.4]]), torch.tensor([1])
    found = influence_on_action(moment, obs, action)
    agent, path = training.state.agent, list(training.state.agent.actor.parameters())
    wanted = torch.autograd.grad(ppo.log_prob(agent(obs), action).sum(), path)
    losses = moment.objective.per_record({f"actor.{name}": p for name, p in agent.actor.named_parameters()})
    brute = []
    for loss in losses:
        own = torch.autograd.grad(loss, path, retain_graph=True)
        brute.append(-sum(float((g * w).sum()) for g, w in zip(own, wanted, strict=True)))
    torch.testing.assert_close(found, torch.tensor(brute), rtol=1e-4, atol=1e-6)


def test_embeddings_are_the_inputs_of_the_policys_last_layer() -> None:
    agent, obs = open_training().state.agent, torch.randn(6, 4)
    np.testing.assert_allclose(embed(agent, obs), agent.actor[:-1](obs).detach(), rtol=1e-6)
