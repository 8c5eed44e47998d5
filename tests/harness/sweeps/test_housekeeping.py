"""What would run, what has run, and the same for programs."""

import json
from pathlib import Path

import numpy as np
import pytest

from filters.errors import UsageError
from harness import run, status
from harness.cells.cell import Cell, record_failure
from harness.sweeps import forecast
from harness.sweeps.summary import plain
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import write_json
from leaderboard.statistics.metrics import Reduction
from leaderboard.statistics.significance import Interval
from tests.harness.conftest import real_cell

WORDS = ["--filter", "random", "--no-baseline", "--task", "smoke-FrozenLake"]


def test_a_dry_run_counts_and_touches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "nowhere"
    words = ["--filter", "iif", "--suite", "quick", "--seeds", "3", "--jobs", "2", "--out", str(out), "--dry-run"]
    assert run.main(words) == 0
    said = capsys.readouterr().out
    assert "12 cells to run, 2 side by side: about " in said
    assert "a rough figure" in said
    assert not out.exists()


def test_a_dry_run_learns_from_past_runs(real_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = real_cell(real_runs)
    past = forecast.find_past(cell.path.parents[1])
    assert past is not None
    run_json = json.loads((cell.path / "run.json").read_text())
    assert past.seconds == {"random": pytest.approx(sum(run_json["seconds"].values()))}
    assert past.bytes == sum(file.stat().st_size for file in cell.path.iterdir())
    record_failure(Cell(cell.task, "random", 1, real_runs), UsageError("no"), None)
    assert run.main([*WORDS, "--seeds", "3", "--out", str(real_runs), "--dry-run"]) == 0
    said = capsys.readouterr().out
    (row,) = [line.split("│")[1:-1] for line in said.splitlines() if line.startswith("│")]
    assert [word.strip() for word in row[1:5]] == ["3", "1", "1", "1"]
    assert "past runs" in row[-1]
    assert "1 cells to run" in said


def test_workers_take_cells_in_order() -> None:
    assert forecast.makespan([4.0, 3.0, 2.0, 2.0], 2) == 6.0  # 4 + 2 next to 3 + 2
    assert forecast.makespan([], 3) == 0.0


def test_the_figure_without_past_runs() -> None:
    cell = Cell(find_task("FrozenLake-quick"), "none", 0, Path("out"))
    work = 20 * 2048 * 11
    assert forecast.cell_seconds(cell, None) == forecast.START_SECONDS + work / forecast.WORK_PER_SECOND
    past = forecast.Past({"none": 2.0, "iif": 4.0}, 1.0)
    assert forecast.cell_seconds(cell, past) == 2.0
    assert forecast.cell_seconds(Cell(cell.task, "dtv", 0, Path("out")), past) == 3.0


def test_a_failed_cell_is_reported_and_left_alone(real_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = Cell(find_task("smoke-FrozenLake"), "random", 1, real_runs)
    record_failure(failed, UsageError("out of luck"), 1)
    before = (failed.path / "failure.json").stat()
    assert run.main([*WORDS, "--seeds", "2", "--out", str(real_runs)]) == 1
    said = capsys.readouterr().out
    assert "2 cells, 1 of them complete, 1 failed before (--retry-failed runs them again), 0 to run" in said
    assert "out of luck" in said
    assert (failed.path / "failure.json").stat() == before


def test_json_ends_with_one_object_and_nothing_else(real_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record_failure(Cell(find_task("smoke-FrozenLake"), "random", 1, real_runs), UsageError("out of luck"), 1)
    assert run.main([*WORDS, "--seeds", "2", "--out", str(real_runs), "--json"]) == 1
    out, err = capsys.readouterr()
    said = json.loads(out)
    assert said["cells"] == {"all": 2, "complete": 1, "failed": 1}
    (failure,) = said["failures"]
    assert (failure["spec"], failure["seed"], failure["error"], failure["round"]) == ("random", 1, "out of luck", 1)
    (row,) = said["comparison"]["tasks"][0]["rows"]
    assert (row["spec"], row["seeds"], row["versus"]) == ("random", [0], None)
    assert row["kept"] == [pytest.approx(0.875)]
    assert "2 cells, 1 of them complete" in err


def test_numbers_that_json_lacks_become_null() -> None:
    reduction = Reduction(np.array([0.5, np.nan]), np.array([True, False]))
    assert plain(reduction) == {"values": [0.5, None], "censored": [True, False]}
    assert plain(Interval(1.0, float("-inf"), 2.0)) == {"mean": 1.0, "low": None, "high": 2.0}
    assert plain({"a": (np.float64(2.0), Path("x"))}) == {"a": [2.0, "x"]}


def test_status_counts_and_names(real_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = real_cell(real_runs)
    assert status.main([str(real_runs)]) == 0
    record_failure(Cell(cell.task, "random", 1, real_runs), UsageError("out of luck"), 1)
    started = Cell(cell.task, "iif", 2, real_runs)
    started.path.mkdir(parents=True)
    write_json(started.path / "config.json", json.loads((cell.path / "config.json").read_text()) | {"filter": "iif"})
    (started.path / "rounds.jsonl").write_text('{"round": 0}\n')
    capsys.readouterr()
    assert status.main([str(real_runs), "--json"]) == 1
    said = {(state["filter"], state["status"]): state for state in json.loads(capsys.readouterr().out)}
    assert set(said) == {("random", "complete"), ("random", "failed"), ("iif", "incomplete")}
    assert said["random", "complete"]["rounds_done"] == 2
    assert said["random", "failed"]["error"] == "out of luck"
    assert said["iif", "incomplete"]["rounds_done"] == 1
    assert status.main([str(real_runs)]) == 1
    assert "random seed 1: failed, out of luck" in capsys.readouterr().out
