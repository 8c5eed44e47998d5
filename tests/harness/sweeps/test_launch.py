"""Workers: what becomes of cells that fail, hang, die, are another sweep's, or find the disk full."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from filters.errors import UsageError
from harness.cells.cell import Cell
from harness.cells.lock import CellLock
from harness.sweeps.launch import Event, Worker, run_cells
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import read_failure, status
from tests import stub_cells

ROOT = Path(__file__).parents[3]
TASK = find_task("smoke-FrozenLake")


def cells(out: Path, count: int) -> list[Cell]:
    return [Cell(TASK, "none", seed, out) for seed in range(count)]


def test_cells_that_fail_hang_or_die_are_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    events: list[Event] = []
    run_cells(cells(tmp_path, 5), jobs=2, on_event=events.append, timeout=1.0, run=stub_cells.by_seed)
    ended = {event.cell.seed: event.error for event in events if event.ended}
    assert ended[0] is None
    assert ended[4] is None
    assert ended[1] == "it failed"
    assert ended[2] == "it took longer than the 1 seconds of --cell-timeout"
    assert ended[3] is not None
    assert "killed by SIGKILL" in ended[3]
    hung, dead = (read_failure(cell.path) for cell in cells(tmp_path, 4)[2:])
    assert (hung.error, hung.round) == (ended[2], 1)
    assert (dead.error, dead.round) == (ended[3], 2)
    said = json.loads((hung.path / "failure.json").read_text())
    assert (said["task"], said["filter"], said["seed"], said["checkpoint"]) == (TASK.id, "none", 2, None)
    assert said["provenance"]["packages"]["torch"]
    assert not list(tmp_path.rglob(".*"))


def test_a_full_disk_stops_the_sweep_and_makes_no_failure(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No space left"):
        run_cells(cells(tmp_path, 3), jobs=1, on_event=lambda event: None, run=stub_cells.full_disk)
    assert not list(tmp_path.rglob("failure.json"))


def test_a_cell_of_another_sweep_is_looked_at_again(tmp_path: Path) -> None:
    events: list[Event] = []
    run_cells(cells(tmp_path, 2), jobs=1, on_event=events.append, run=stub_cells.busy_at_first)
    assert [(event.cell.seed, event.busy) for event in events if event.ended] == [
        (0, True),
        (1, True),
        (0, False),
        (1, False),
    ]


def test_a_dead_worker_s_cell_is_left_to_the_sweep_that_has_it_by_now(tmp_path: Path) -> None:
    cell = cells(tmp_path, 1)[0]
    worker = Worker(stub_cells.ends)
    worker.cell = cell
    worker.process.kill()
    lock = CellLock(cell.path)
    assert lock.take()
    with lock:
        event = worker.receive()
    worker.stop()
    assert (event.ended, event.busy, event.error) == (True, True, None)
    assert status(cell.path) == "incomplete"


def test_a_worker_that_dies_after_its_cell_was_complete_costs_nothing(tmp_path: Path) -> None:
    cell = cells(tmp_path, 1)[0]
    worker = Worker(stub_cells.ends)
    worker.cell = cell
    cell.path.mkdir(parents=True)
    (cell.path / "run.json").touch()
    worker.process.kill()
    event = worker.receive()
    worker.stop()
    assert (event.ended, event.error) == (True, None)
    assert [file.name for file in cell.path.iterdir()] == ["run.json"]


def test_workers_start_with_interruptions_held_back_from_the_very_first(tmp_path: Path) -> None:
    """Multiprocessing's own tracker, started with the first worker, would let Ctrl-C through again."""
    script = tmp_path / "first_worker.py"
    script.write_text(
        "import multiprocessing, signal\n"
        "from leaderboard.runs.interrupts import interruptions_held_back\n"
        "def mask(connection):\n"
        "    connection.send(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set()))\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    for _ in range(2):\n"
        "        ours, theirs = context.Pipe()\n"
        "        process = context.Process(target=mask, args=(theirs,))\n"
        "        with interruptions_held_back():\n"
        "            process.start()\n"
        "        print(ours.recv(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set()))\n"
        "        process.join()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["True", "False"] * 2
