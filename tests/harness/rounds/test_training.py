"""Stopping before an update changes nothing, and a counterfactual update leaves no trace."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from algos import ppo, ppo_minigrid
from algos.training.recorder import SilentRecorder
from filters.registry import make
from harness.rounds.training import Training
from harness.tasks.task import Task

ARGS = ppo.Args(
    env_id="CartPole-v1", num_envs=2, num_steps=64, minibatch_size=32, total_steps=384, eval_every=1, eval_episodes=2
)
GRID = ppo_minigrid.Args(
    env_id="MiniGrid-Empty-5x5-v0", num_envs=2, num_steps=64, minibatch_size=32, total_steps=256, update_epochs=2
)


def open_training(args: Any, spec: str = "iif:fraction=1") -> Training:
    return Training(Task("test/v1", "", args, random=0.0, solved=1.0, returns=(-500.0, 500.0)), make(spec), seed=3)


def flat(agent: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in agent.parameters()])


@pytest.mark.parametrize("args", [ARGS, GRID])
def test_a_run_that_stops_before_each_update_is_the_run_that_does_not(args: Any) -> None:
    whole = args.__class__(**vars(replace(args, seed=3, compile="off")))
    module = ppo if isinstance(args, ppo.Args) else ppo_minigrid
    agent = module.train(whole, make("iif:fraction=1"), SilentRecorder())
    training = open_training(args)
    for _ in range(args.rounds):
        training.update(training.collect())
    assert torch.equal(flat(agent), flat(training.state.agent))


@pytest.mark.parametrize("args", [ARGS, replace(ARGS, optimizer="sgd")])
def test_a_counterfactual_update_is_the_real_one_and_leaves_no_trace(args: Any) -> None:
    meddled, plain = open_training(args), open_training(args)
    for _ in range(2):
        first, second = meddled.collect(), plain.collect()
        assert not bool(first.selection.keep.all())
        before = flat(meddled.state.agent)
        with meddled.counterfactual_update(first, torch.ones_like(first.selection.keep)):
            on_all = flat(meddled.state.agent)
        assert torch.equal(flat(meddled.state.agent), before)
        with meddled.counterfactual_update(first, first.selection.keep) as steps:
            filtered = flat(meddled.state.agent)
        assert 0 < steps < 4 * 4
        assert torch.equal(flat(meddled.state.agent), before)
        plain.update(second)
        meddled.update(first)
        assert torch.equal(filtered, flat(plain.state.agent))
        assert torch.equal(flat(meddled.state.agent), flat(plain.state.agent))
        assert not torch.equal(on_all, filtered)
