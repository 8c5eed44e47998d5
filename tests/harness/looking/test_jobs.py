"""What all commands that look into rounds share: rounds by number, the start at a checkpoint, the extra for figures."""

from pathlib import Path

import pytest

from filters.api import Objective, Rollout, Selection
from filters.errors import UsageError
from filters.none import NoFilter
from harness import decompose, diagnose
from harness.cells.cell import Cell, run_cell
from harness.looking.jobs import parse_rounds, parse_seed
from harness.tasks.catalogue import find_task
from tests.harness.looking.found import LAKE, read


def test_rounds_of_the_command_line() -> None:
    assert parse_rounds("8", most=10, name="--rounds", counts=True) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert parse_rounds("8", most=10, name="--round", counts=False) == (8,)
    assert parse_rounds("10, 2,5", most=10, name="--rounds", counts=True) == (2, 5, 10)
    assert parse_rounds("10,", most=10, name="--rounds", counts=True) == (10,)
    assert parse_rounds("3", most=10, name="--rounds", counts=True, behind=7) == (8, 9, 10)
    assert parse_rounds("8", most=10, name="--round", counts=False, behind=7) == (8,)
    with pytest.raises(UsageError, match=r"round 11 is beyond the task's budget of 10 rounds; choose 8\.\.10"):
        parse_rounds("4", most=10, name="--rounds", counts=True, behind=7)
    with pytest.raises(UsageError, match=r"made after round 7; choose 8\.\.10"):
        parse_rounds("7,9", most=10, name="--rounds", counts=True, behind=7)
    with pytest.raises(UsageError, match=r"round 11 is beyond the task's budget of 10 rounds; choose 1\.\.10"):
        parse_rounds("11", most=10, name="--round", counts=False)
    for text in ("0", "-1,2", "two", ""):
        with pytest.raises(UsageError, match="takes rounds from 1 on"):
            parse_rounds(text, most=10, name="--round", counts=False)


def test_a_single_seed_needs_no_comma() -> None:
    assert parse_seed("3") == (3,)
    assert parse_seed("0,2") == (0, 2)
    assert parse_seed("3,") == (3,)


class RaisesInRoundTwo(NoFilter):
    """Passes one round."""

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        if rollout.round:
            raise RuntimeError("enough")
        return super().select(rollout, objective)


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


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("harness.drawing.figures.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'filtergym\[figures\]'"):
        diagnose.main([*LAKE, "--round", "1", "--out", str(tmp_path)])
