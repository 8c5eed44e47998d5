"""Looks into a run that begin at its checkpoint."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from algos import ppo
from algos.training import checkpoint
from filters.api import Objective, Rollout, Selection
from filters.errors import UsageError
from filters.none import NoFilter
from filters.registry import make
from harness import decompose, diagnose
from harness.cells.cell import Cell, run_cell
from harness.looking.rounds import Training
from harness.looking.start import read_start
from harness.tasks.catalogue import Task, find_task
from tests.harness.looking.test_diagnose import LAKE, read


class RaisesInRoundTwo(NoFilter):
    """Passes one round."""

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        if rollout.round:
            raise RuntimeError("enough")
        return super().select(rollout, objective)


def test_a_checkpoint_to_start_from(tmp_path: Path) -> None:
    """The round after it is the one that the run itself would have gone on with: network, moments, streams, envs."""
    args = ppo.Args(env_id="CartPole-v1", num_envs=2, num_steps=16, minibatch_size=8, total_steps=96, hidden=(5, 3))
    task = Task("test/v1", "", args, random=0.0, solved=1.0, returns=(-500.0, 500.0))
    run = Training(task, make("iif"), seed=4)
    run.update(run.collect())
    run.state.restart(run.args)
    checkpoint.save(tmp_path / "checkpoint.pt", run.state, {})
    again = Training(task, make("iif"), seed=4, start=read_start(tmp_path / "checkpoint.pt"))
    for number in (2, 3):
        theirs, mine = run.collect(), again.collect()
        assert (theirs.number, mine.number) == (number, number)
        assert torch.equal(theirs.rollout.obs, mine.rollout.obs)
        assert torch.equal(theirs.rollout.actions, mine.rollout.actions)
        assert torch.equal(theirs.rollout.advantages, mine.rollout.advantages)
        assert torch.equal(theirs.selection.keep, mine.selection.keep)
        run.update(theirs)
        again.update(mine)
    other = Training(replace(task, args=replace(args, hidden=(4,))), make("iif"), seed=4)
    with pytest.raises(UsageError, match="of another network or optimizer"):
        read_start(tmp_path / "checkpoint.pt").put_into(other.state, other.args)  # type: ignore[union-attr]


def test_the_checkpoint_of_a_failed_run_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = find_task("smoke-FrozenLake").varied(env_backend="gymnasium", checkpoint_every=1)
    cell = Cell(task, f"{__name__}:RaisesInRoundTwo", 0, tmp_path)
    assert run_cell(cell, lambda *_: None) is not None
    words = [*LAKE, "--policy", str(cell.path / "checkpoint.pt"), "--out", str(tmp_path / "out")]
    assert diagnose.main([*words, "--round", "2"]) == 0
    assert "seed 0, round 2: sign mismatches" in capsys.readouterr().out
    for more, sentence in (
        (["--round", "1,2"], r"the checkpoint was made after round 1; choose 2\.\.2"),
        (["--round", "2", "--seed", "0,1"], "is a checkpoint of one run"),
        (["--round", "2", "--task", "smoke-MiniGrid"], "of another network or optimizer"),
    ):
        with pytest.raises(UsageError, match=sentence):
            diagnose.main([*words, *more])
    words = ["--task", "smoke-FrozenLake", *words[4:]]
    assert decompose.main([*words, "--filter", "dtv", "--rounds", "1"]) == 0
    found = read(tmp_path / "out" / "smoke-FrozenLake-v1" / "dtv" / "seed-0" / "terms.json")
    assert [line["round"] for line in found["rounds"]] == [2], "the first one after the checkpoint"
