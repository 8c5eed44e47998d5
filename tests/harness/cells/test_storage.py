"""Full disks, folders that can't be written to, and two sweeps on one output folder."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cells.cell import Cell, StorageError, take_cell
from harness.cells.record import RunRecorder
from harness.checks.verification import verify
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import status

TASK = find_task("smoke-FrozenLake")


def quiet(done: int, rounds: int) -> None:
    """Take no notice."""


@pytest.mark.parametrize("moment", ["__init__", "evaluation", "round", "finish"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_gives_out_is_no_failure_of_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    cell = Cell(TASK, "none", 0, tmp_path)
    monkeypatch.setattr(RunRecorder, moment, fail)
    with pytest.raises(StorageError, match=r"can't write to .*; what is complete stays so"):
        take_cell(cell, quiet)
    assert status(cell.path) == "incomplete"


def test_a_cell_goes_on_once_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell(TASK, "none", 0, tmp_path)
    cell.path.mkdir(parents=True)
    (cell.path / "config.json").write_text("{")
    (cell.path / ".run.json.9.tmp").write_text("{")
    assert take_cell(cell, quiet).error is None
    assert verify(tmp_path).problems == ()
    before = (cell.path / "run.json").stat()
    assert take_cell(cell, quiet).error is None
    assert (cell.path / "run.json").stat() == before


def command(out: Path, *words: str) -> list[str]:
    full = [sys.executable, "-m", "harness.run", "--task", "smoke-FrozenLake", "--jobs", "2", "--out", str(out)]
    return [*full, *words]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for three cells."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=72k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small file system takes root and Linux")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_stops_the_sweep_with_one_sentence_and_it_goes_on_later(small_disk: Path) -> None:
    out = small_disk / "runs"
    words = command(out, "--filter", "random", "--no-baseline", "--seeds", "4")
    full = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert full.returncode == 2, full.stdout
    assert full.stderr.count("\n") == 1, full.stderr
    assert "No space left on device" in full.stderr
    assert not list(out.rglob("failure.json"))
    found = verify(out)
    assert found.problems == ()
    assert 0 < found.states["complete"] < 4
    finished = {path: path.stat() for path in out.rglob("run.json")}

    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    again = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    assert {path: path.stat() for path in finished} == finished
    found = verify(out)
    assert (found.problems, found.states) == ((), {"complete": 4})


def test_two_sweeps_on_one_folder_compute_every_cell_once(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    environment = os.environ | {"FILTERGYM_COUNTS": str(counts), "PYTHONPATH": os.getcwd()}
    words = command(tmp_path / "runs", "--filter", "tests.counting_filter:Counts", "--no-baseline", "--seeds", "4")
    sweeps = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    outputs = [sweep.communicate(timeout=300) for sweep in sweeps]
    assert [sweep.returncode for sweep in sweeps] == [0, 0], outputs
    assert sorted(counts.read_text().split()) == ["0"] * 4 + ["1"] * 4
    assert all("tests.counting_filter:Counts" in output for output, _ in outputs)
    found = verify(tmp_path / "runs", trust=["tests.counting_filter:Counts"])
    assert (found.problems, found.notes, found.states) == ((), (), {"complete": 4})
    assert not list(tmp_path.rglob("*.lock"))
