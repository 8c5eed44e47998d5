"""A cell that was interrupted goes on from its checkpoint, or starts over where it must."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from algos.training.checkpoint import FILE
from algos.training.clock import TRAINING
from filters.errors import UsageError
from harness.cells.cell import Cell, is_complete, run_cell
from harness.cells.record import RunRecorder
from harness.run import Args
from harness.sweeps.plan import plan
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import read_cell, status

SMOKE = find_task("smoke-MiniGrid")
TASK = replace(SMOKE, id="five-rounds/v1@checkpoint-2", args=replace(SMOKE.args, total_steps=1280, checkpoint_every=2))


class KilledError(BaseException):
    """Passes through everything, as the end of the process would."""


def cell_in(out: Path, **changes: Any) -> Cell:
    return Cell(**({"task": TASK, "spec": "random", "seed": 3, "out": out} | changes))


def run(cell: Cell, *, stop: int | None = None, by: Callable[[], None] | None = None) -> str | None:
    """Run the cell until a number of rounds is done."""

    def progress(done: int, rounds: int) -> None:
        if done == stop:
            by() if by else kill()

    return run_cell(cell, progress)


def kill() -> None:
    raise KilledError


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def closed_files(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a process's end would close."""
    opened = []
    init = RunRecorder.__init__

    def remember(self: RunRecorder, *args: Any, **kwargs: Any) -> None:
        opened.append(self)
        init(self, *args, **kwargs)

    monkeypatch.setattr(RunRecorder, "__init__", remember)
    yield
    for recorder in opened:
        recorder.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    torch.set_num_threads(1)
    cell = cell_in(tmp_path_factory.mktemp("undisturbed"))
    assert run_cell(cell, lambda done, rounds: None) is None
    assert not (cell.path / FILE).exists()
    assert "stretches" not in json.loads((cell.path / "run.json").read_text())
    return results(cell)


def results(cell: Cell) -> dict[str, Any]:
    """Every line of the logs and the settings; all but the times."""
    assert status(cell.path) == "complete"
    read_cell(cell.path)
    lines = {
        name: [json.loads(line) | {"seconds": None} for line in (cell.path / name).read_text().splitlines()]
        for name in ("evals.jsonl", "rounds.jsonl")
    }
    return lines | {"config": json.loads((cell.path / "config.json").read_text())}


def stretches(cell: Cell) -> list[int]:
    found = json.loads((cell.path / "run.json").read_text()).get("stretches", [])
    return [stretch["from_round"] for stretch in found]


@pytest.fixture
def interrupted(tmp_path: Path) -> Cell:
    """A cell whose process went away after its third round, a round after its checkpoint."""
    cell = cell_in(tmp_path)
    with pytest.raises(KilledError):
        run(cell, stop=3)
    assert (cell.path / FILE).is_file()
    assert len((cell.path / "rounds.jsonl").read_text().splitlines()) == 3
    return cell


def test_an_interrupted_cell_goes_on_and_ends_like_an_undisturbed_one(
    interrupted: Cell, undisturbed: dict[str, Any]
) -> None:
    (interrupted.path / ".checkpoint.pt.1.tmp").write_bytes(b"half")
    with pytest.raises(KilledError):
        run(interrupted, stop=5)
    before = json.loads((interrupted.path / "rounds.jsonl").read_text().splitlines()[1])
    assert run(interrupted) is None
    assert results(interrupted) == undisturbed
    assert stretches(interrupted) == [0, 2, 4]
    assert is_complete(interrupted)
    assert {path.name for path in interrupted.path.iterdir() if "tfevents" not in path.name} == {
        "config.json",
        "evals.jsonl",
        "rounds.jsonl",
        "run.json",
    }
    rounds = [json.loads(line) for line in (interrupted.path / "rounds.jsonl").read_text().splitlines()]
    assert rounds[1] == before  # what was done is not done again, its time included
    last = json.loads((interrupted.path / "evals.jsonl").read_text().splitlines()[-1])
    assert last["seconds"] == pytest.approx(sum(line["seconds"][phase] for line in rounds for phase in TRAINING))


def test_the_plots_show_every_round_once(interrupted: Cell) -> None:
    assert run(interrupted) is None
    events = EventAccumulator(str(interrupted.path)).Reload()
    assert [event.step for event in events.Scalars("filter/kept")] == [256, 512, 768, 1024, 1280]


def test_a_killed_process_goes_on_in_another(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    script = (
        "import os, signal, sys, torch; from pathlib import Path; from tests.harness.cells.test_resume import *;"
        "torch.set_num_threads(1);"
        "run(cell_in(Path(sys.argv[1])), stop=3, by=lambda: os.kill(os.getpid(), signal.SIGKILL))"
    )
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    cell = cell_in(tmp_path)
    assert run(cell) is None
    assert results(cell) == undisturbed
    assert stretches(cell) == [0, 2]


def test_a_failed_cell_goes_on_from_its_checkpoint(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    def fail() -> None:
        raise MemoryError("for once")

    cell = cell_in(tmp_path)
    sentence = run(cell, stop=3, by=fail)
    assert sentence == "MemoryError: for once"
    assert json.loads((cell.path / "failure.json").read_text())["round"] == 3
    assert run(cell) is None
    assert results(cell) == undisturbed
    assert stretches(cell) == [0, 2]
    assert not (cell.path / "failure.json").exists()


def other_settings(cell: Cell) -> None:
    """As if the checkpoint of another seed had got here."""
    other = cell_in(cell.out, seed=4)
    with pytest.raises(KilledError):
        run(other, stop=3)
    for name in (FILE, "evals.jsonl", "rounds.jsonl"):
        shutil.copy(other.path / name, cell.path / name)


def edit_config(cell: Cell) -> None:
    config = json.loads((cell.path / "config.json").read_text())
    config["args"]["gamma"] = 0.5
    (cell.path / "config.json").write_text(json.dumps(config))


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2000])


def link(cell: Cell) -> None:
    """The log is a link to a file elsewhere."""
    victim = cell.out / "victim.jsonl"
    shutil.move(cell.path / "evals.jsonl", victim)
    (cell.path / "evals.jsonl").symlink_to(victim)


class Bomb:
    """Leaves a mark wherever it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


UNFIT: dict[str, tuple[Callable[[Cell], Any], str]] = {
    "truncated": (lambda cell: shorten(cell.path / FILE), "is damaged or no checkpoint"),
    "pickle": (lambda cell: (cell.path / FILE).write_bytes(pickle.dumps(Bomb(cell.out / "mark"))), "is damaged"),
    "torch pickle": (lambda cell: torch.save(Bomb(cell.out / "mark"), cell.path / FILE), "is damaged"),
    "another cell's": (other_settings, "was made with other settings, other code or other packages"),
    "edited settings": (edit_config, "its checkpoint is of other settings"),
    "log cut": (lambda cell: shorten(cell.path / "rounds.jsonl"), "is not what it was"),
    "log edited": (
        lambda cell: (cell.path / "evals.jsonl").write_text(
            (cell.path / "evals.jsonl").read_text().replace("0", "1", 1)
        ),
        "is not what it was",
    ),
    "log linked": (link, "its checkpoint is of other settings"),
}


@pytest.mark.parametrize("how", UNFIT)
def test_a_checkpoint_that_does_not_fit_costs_a_line_and_not_the_run(
    interrupted: Cell, undisturbed: dict[str, Any], how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, words = UNFIT[how]
    spoil(interrupted)
    victim = interrupted.out / "victim.jsonl"
    before = victim.read_bytes() if victim.exists() else None
    capsys.readouterr()
    assert run(interrupted) is None
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert words in errors
    assert results(interrupted) == undisturbed
    assert stretches(interrupted) == []
    assert not (interrupted.out / "mark").exists()
    assert before is None or victim.read_bytes() == before
    assert len(list(interrupted.path.glob("events*"))) == 1


def test_other_code_starts_over(
    interrupted: Cell, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.cells.cell.project_sources", lambda agent, filter: {"algos.ppo": "of a later version"})
    assert run(interrupted) is None
    assert "other code" in capsys.readouterr().err
    assert stretches(interrupted) == []


def test_without_checkpoints_nothing_is_kept_and_cells_start_over(tmp_path: Path) -> None:
    task = replace(TASK, id="five-rounds/v1", args=replace(TASK.args, checkpoint_every=0))
    cell = cell_in(tmp_path, task=task)
    with pytest.raises(KilledError):
        run(cell, stop=3)
    assert not (cell.path / FILE).exists()
    assert run(cell) is None
    assert len(read_cell(cell.path).kept) == 5


def test_the_command_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    words = ["--filter", "random", "--no-baseline", "--task", "smoke-MiniGrid", "--seeds", "1"]
    words += ["--checkpoint-every", "1"]
    cells = plan(
        Args(
            filter=(("random",),),
            baseline=False,
            task=("smoke-MiniGrid",),
            seeds="1",
            checkpoint_every=1,
            out=tmp_path,
        )
    )
    assert [cell.task.id for cell in cells] == ["smoke-MiniGrid/v1@checkpoint-1"]
    with pytest.raises(KilledError):
        run(cells[0], stop=2)
    command = [sys.executable, "-m", "harness.run", *words, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stretches(cells[0]) == [0, 1]
    assert done.stderr == ""


def test_a_negative_number_of_rounds_is_explained() -> None:
    with pytest.raises(UsageError, match="--checkpoint-every must be 0 or more"):
        plan(Args(filter=(("iif",),), checkpoint_every=-1))
