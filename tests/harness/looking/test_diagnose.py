"""The commands that look into rounds, end to end on short tasks, and what they refuse."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo
from algos.envs.single import make_env
from filters.errors import UsageError
from filters.registry import make
from harness import diagnose
from harness.drawing.pictures import LookAround, in_words
from harness.looking import findings
from harness.looking.rounds import Training
from harness.looking.start import Start
from harness.looking.temporal import embed, influence_on_action, read_observation
from harness.tasks.catalogue import Task

LAKE = ["--task", "smoke-FrozenLake", "--budget", "3000"]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def check_figures(folder: Path, names: set[str]) -> None:
    """Every figure is a picture with words beside it."""
    assert {path.stem for path in folder.glob("*.png")} == names
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert len(path.with_suffix(".txt").read_text().split()) > 10


def test_a_diagnosis_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*LAKE, "--seed", "0,1", "--round", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert diagnose.main(words) == 0
    said = capsys.readouterr().out
    assert said.count("sign mismatches bottom") == 2
    folder = tmp_path / "smoke-FrozenLake-v1" / "iif"
    check_figures(folder / "seed-1" / "round-2", {"records", "ranking", "fifths"})
    check_figures(folder, {"summary"})
    found = read(folder / "seed-1" / "round-2" / "diagnosis.json")
    assert found["summary"]["records"] == 1024, "all records, for they have at most 16 states"
    assert found["ranking"]["influence"] == sorted(found["ranking"]["influence"], reverse=True)
    top, bottom = found["shown"]["top"][0], found["shown"]["bottom"][0]
    assert top["influence"] == found["ranking"]["influence"][0]
    assert bottom["influence"] == found["ranking"]["influence"][-1]
    assert bottom["kept"] is False
    assert len(top["shows"]) == 4
    assert sum("[" in row for row in top["shows"]) == 1
    summary = read(folder / "summary.json")
    both = [read(folder / f"seed-{s}" / "round-2" / "diagnosis.json")["summary"] for s in (0, 1)]
    difference = [one["mismatch"]["bottom"] - one["mismatch"]["top"] for one in both]
    assert summary["rounds"]["2"]["bottom_minus_top"]["mean"] == pytest.approx(np.mean(difference))
    assert summary["seeds"] == [0, 1]


def test_finished_seeds_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "code_version", lambda: {"commit": "abc", "dirty": False})
    words = [*LAKE, "--futures", "2", "--round", "1", "--show", "1", "--out", str(tmp_path)]
    path = tmp_path / "smoke-FrozenLake-v1" / "iif" / "seed-0" / "round-1" / "diagnosis.json"
    assert diagnose.main(words) == 0
    first = path.stat().st_mtime_ns
    assert diagnose.main(words) == 0
    assert path.stat().st_mtime_ns == first
    assert diagnose.main([*words, "--futures", "4"]) == 0
    assert read(path)["advantages"]["futures"] == 4
    monkeypatch.setattr(findings, "code_version", lambda: {"commit": "abc", "dirty": True})
    second = path.stat().st_mtime_ns
    assert diagnose.main([*words, "--futures", "4"]) == 0
    assert path.stat().st_mtime_ns > second, "edited code may find something else"


def test_trajectory_scores_repeating_states_and_another_trainer(tmp_path: Path) -> None:
    words = ["--filter", "dtv-loo", "--trained-by", "none", "--advantages", "repeats", "--round", "2"]
    assert diagnose.main([*LAKE, *words, "--out", str(tmp_path)]) == 0
    found = read(tmp_path / "smoke-FrozenLake-v1" / "dtv-loo@none" / "seed-0" / "round-2" / "diagnosis.json")
    assert found["advantages"]["how"].startswith("from states that repeat in the rollout")
    assert found["advantages"]["futures"] == 0
    assert 0 < found["summary"]["records"] <= 1024


def test_a_grid_end_to_end(tmp_path: Path) -> None:
    words = ["--task", "smoke-MiniGrid", "--records", "6", "--futures", "2", "--round", "1", "--show", "2"]
    assert diagnose.main([*words, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "smoke-MiniGrid-v1" / "iif" / "seed-0" / "round-1"
    check_figures(folder, {"records", "ranking", "fifths"})
    found = read(folder / "diagnosis.json")
    assert found["summary"]["records"] == 6
    assert found["shown"]["top"][0]["shows"][0] == "# # # # #"


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


def test_what_a_record_shows_in_words() -> None:
    lake = make_env("FrozenLake-v1", {"is_slippery": False})
    obs, _ = lake.reset(seed=0)
    assert in_words(lake, LookAround()(lake), obs) == ["[S] F  F  F ", " F  H  F  H ", " F  F  F  H ", " H  F  F  G "]
    grid = make_env("MiniGrid-Empty-5x5-v0")
    obs, _ = grid.reset(seed=0)
    assert in_words(grid, LookAround()(grid), obs) == [
        "# # # # #",
        "# > . . #",
        "# . . . #",
        "# . . G #",
        "# # # # #",
        "step 0 of 100",
    ]
    pole = make_env("CartPole-v1")
    obs = np.array([0.5, 0, 0, -1], np.float32)
    pole.reset(seed=0)
    assert in_words(pole, LookAround()(pole), obs) == ["[ 0.5,  0. ,  0. , -1. ]"]


def test_observations_of_the_command_line(tmp_path: Path) -> None:
    lake, grid = make_env("FrozenLake-v1"), make_env("MiniGrid-Empty-5x5-v0")
    assert read_observation("3", lake).tolist() == np.eye(16)[3].tolist()
    assert read_observation(",".join(["0"] * 15 + ["1"]), lake).tolist() == np.eye(16)[15].tolist()
    np.save(tmp_path / "grid.npy", np.ones((7, 7, 3)))
    assert read_observation(str(tmp_path / "grid.npy"), grid).dtype == np.uint8
    with pytest.raises(UsageError, match=r"has shape \[3\], this task observes \[16\]; give as many numbers"):
        read_observation("1,2,3", lake)
    with pytest.raises(UsageError, match=r"has shape \[1\], this task observes \[7, 7, 3\]; give a \.npy"):
        read_observation("1", grid)
    with pytest.raises(UsageError, match=r"the states of this task are 0\.\.15"):
        read_observation("16", lake)
    for text in ("here", "absent.npy", "absent.json"):
        with pytest.raises(UsageError, match="can't be read as numbers"):
            read_observation(text, lake)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--round", "3"], r"round 3 is beyond the task's budget of 2 rounds"),
        (["--round", "0"], "takes rounds from 1 on"),
        (["--filter", "none", "--round", "1"], "the filter none gives no scores to rank by"),
        (["--filter", "iif:warmup=1", "--round", "1"], "scores nothing in its first 1 rounds"),
        (["--task", "LunarLander", "--advantages", "futures"], "can't be set to a state"),
        (["--futures", "1"], "--futures must be 0"),
        (["--records", "0"], "--records must be at least 1"),
        (["--policy", "absent.ref", "--round", "1"], "--policy: can't read the reference"),
        (["--policy", __file__, "--round", "1"], "is no reference .*, or give a run's checkpoint.pt"),
        (["--target", "action", "--round", "1"], "needs a state"),
        (["--target", "action", "--round", "1", "--pick", "1024"], r"has records 0\.\.1023"),
        (["--target", "action", "--round", "1", "--observation", "1"], r"--action must lie in 0\.\.3"),
        (["--target", "action", "--round", "1", "--observation", "1", "--action", "4"], r"0\.\.3 on this task, got 4"),
        (["--target", "action", "--round", "1", "--observation", "1,2", "--action", "1"], r"has shape \[2\]"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        diagnose.main([*LAKE, *words, "--out", str(tmp_path)])


def test_bad_input_of_the_command(tmp_path: Path) -> None:
    words = ["-m", "harness.diagnose", "--task", "smoke-FrozenLake", "--round", "9", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --round: round 9 is beyond")
    assert "Traceback" not in done.stderr


def test_a_policy_to_start_from(tmp_path: Path) -> None:
    from filters.gradients.reference import Reference

    training = open_training()
    params = {name: torch.full_like(p, 0.25) for name, p in training.state.agent.named_parameters()}
    one = torch.ones(1)
    policy = Reference("other/v1", params, one, one, one)
    started = Training(training.task, make("none"), seed=0, start=Start(policy=policy))
    assert all(bool((p == 0.25).all()) for p in started.state.agent.parameters())
    with pytest.raises(UsageError, match="another architecture"):
        Start(policy=Reference("other/v1", {"a": one}, one, one, one)).put_into(training.state, training.args)


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("harness.drawing.figures.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'filtergym\[figures\]'"):
        diagnose.main([*LAKE, "--round", "1", "--out", str(tmp_path)])
