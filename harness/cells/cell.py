"""How does one (task, filter, seed) become a run directory?"""

import errno
import hashlib
import json
import shutil
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from filters.api import Filter
from filters.errors import FilterError, TrainingError, UsageError
from filters.registry import make, source_of, text_hash
from harness.cells.lock import CellLock
from harness.cells.provenance import provenance
from harness.cells.record import RunRecorder
from harness.cells.resume import Checkpoints, can_go_on, clear_leftovers, run_key
from harness.cells.sources import filter_sources, project_sources
from harness.tasks.own import is_own
from harness.tasks.task import Task
from leaderboard.runs.store import SCHEMA, cell_dir, read_config, read_failure, read_run, status, write_json

STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""errors that no other cell on the same disk would be spared"""
LONGEST = 200_000
"""characters of a traceback that are kept"""

Progress = Callable[[int, int], None]
"""called with (rounds done, rounds in all) after every round"""


class StorageError(UsageError):
    """The output folder can't be written to any more, so the whole sweep stops."""


@dataclass(frozen=True)
class Outcome:
    """What came of a cell."""

    error: str | None = None
    """why it failed, if it did"""
    busy: bool = False
    """another sweep is running it"""


@dataclass(frozen=True)
class Cell:
    """One run of the sweep."""

    task: Task
    spec: str
    """canonical filter spec"""
    seed: int
    out: Path
    device: Literal["cpu", "cuda"] = "cpu"
    jobs: int = 1
    """cells that run side by side, for the record"""
    trace: bool = False
    """write what every round dropped; changes no result"""

    @property
    def path(self) -> Path:
        """The run directory."""
        return cell_dir(self.out, self.task.id, self.spec, self.seed)

    def __str__(self) -> str:
        return f"{self.task.id} {self.spec} seed {self.seed}"


def make_filter(cell: Cell) -> Filter:
    """The cell's filter, with the task's own defaults; raises UsageError."""
    return make(cell.spec, cell.task.filter_defaults)


def describe(cell: Cell) -> dict[str, Any]:
    """The cell's `config.json`: everything needed to run it again, and all that can change its result."""
    filter = make_filter(cell)
    config = {
        "schema": SCHEMA,
        "task": cell.task.id,
        "filter": cell.spec,
        "filter_class": f"{type(filter).__module__}:{type(filter).__qualname__}",
        "filter_fields": asdict(filter),
        "filter_files": file_hashes(asdict(filter)),
        "apply": cell.task.apply or filter.apply,
        "seed": cell.seed,
        "device": cell.device,
        "agent": cell.task.agent,
        "args": asdict(cell.task.args) | {"seed": cell.seed, "device": cell.device},  # the device may be elsewhere
        "references": cell.task.references,
    }
    if is_own(cell.task.id):  # what the id stands for is known here alone
        config |= {"task_apply": cell.task.apply, "task_filters": cell.task.filter_defaults}
    if sources := filter_sources(filter):
        config["filter_sources"] = sources
    roundtrip: dict[str, Any] = json.loads(json.dumps(config))
    return roundtrip


def file_hashes(fields: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of every file that a filter's fields name: another file under the same name is another setting."""
    hashes: dict[str, str] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            hashes |= {f"{name}.{inner}": digest for inner, digest in file_hashes(value).items()}
        elif isinstance(value, str) and Path(value).is_file():
            hashes[name] = hashlib.sha256(Path(value).read_bytes()).hexdigest()
    return hashes


def is_complete(cell: Cell) -> bool:
    """Whether the cell has a complete run of the very same settings.

    Raises:
        UsageError: if it has a complete run of other settings, or one that can't be read.
    """
    if status(cell.path) != "complete":
        return False
    if cell.path.is_symlink():
        raise UsageError(f"{cell.path} is a link; runs live in real folders, so delete it or choose another --out")
    different = other_settings(read_config(cell.path), describe(cell))
    if different:
        raise UsageError(
            f"{cell.path} holds a run with other settings ({', '.join(different)} differ); "
            "choose another --out or delete that folder"
        )
    return True


def other_settings(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """The keys by which two configs differ."""
    return sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))


def changed_sources(cell: Cell) -> list[str]:
    """This project's modules behind the complete cell that were others when it ran; empty if that is not known."""
    recorded = read_run(cell.path).get("provenance")
    sources = recorded.get("sources") if isinstance(recorded, dict) else None
    if not isinstance(sources, dict):
        return []
    today = project_sources(cell.task.agent, make_filter(cell))
    return sorted(name for name in today.keys() | sources.keys() if today.get(name) != sources.get(name))


def is_failed(cell: Cell) -> bool:
    """Whether the cell has failed with the very same settings; after a change of its filter's source it has not."""
    if status(cell.path) != "failed":
        return False
    if not (cell.path / "config.json").is_file():
        return True
    return not other_settings(read_config(cell.path), describe(cell))


def forget_failure(cell: Cell) -> None:
    """Make a failed cell one that has yet to run; raises StorageError if that can't be written."""
    try:
        (cell.path / "failure.json").unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(cell, error) from error


def take_cell(cell: Cell, progress: Progress) -> Outcome:
    """Run a cell, unless another sweep is at it or has settled it since; its folder is locked meanwhile.

    Raises:
        StorageError: the folder can't be written to.
        UsageError: another sweep has put a run of other settings there.
    """
    lock = CellLock(cell.path)
    try:
        if not lock.take():
            return Outcome(busy=True)
        with lock:
            return settled(cell) or Outcome(error=run_cell(cell, progress))
    except OSError as error:
        raise storage_error(cell, error) from error


def settled(cell: Cell) -> Outcome | None:
    """What has come of a cell, whose lock is held, if nothing is left to run.

    Raises:
        OSError: the folder can't be written to.
        UsageError: another sweep has put a run of other settings there.
    """
    try:
        describe(cell)
    except UsageError as error:  # its filter can't be made any more
        return Outcome(error=record_failure(cell, error, None))
    if is_complete(cell):
        return Outcome()
    return Outcome(error=read_failure(cell.path).error) if status(cell.path) == "failed" else None


def run_cell(cell: Cell, progress: Progress) -> str | None:
    """Run a cell, from its checkpoint if it has one, and leave its directory complete or failed.

    Args:
        cell: what to run.
        progress: called with (rounds done, rounds in all) after every round.

    Returns:
        None, or the sentence that says why it failed.

    Raises:
        OSError, StorageError: the folder can't be written to; the cell is then neither complete nor failed.
    """
    config = describe(cell)
    if can_go_on(cell.path, config):
        clear_leftovers(cell.path)
    else:
        if cell.path.exists():
            shutil.rmtree(cell.path)
        cell.path.mkdir(parents=True)
        write_json(cell.path / "config.json", config)
    recorder = RunRecorder(cell.path, progress, open_checkpoints(cell, config), trace=cell.trace)
    try:
        args = replace(cell.task.args, seed=cell.seed, device=cell.device)
        filter = make_filter(cell)
        source = source_of(type(filter))
        agent = cell.task.module.train(args, filter, recorder, cell.task.apply)
        recorder.finish(
            agent,
            provenance(cell.device, jobs=cell.jobs) | {"sources": project_sources(cell.task.agent, filter)},
            filter_source=None if source is None else text_hash(source),
        )
    except Exception as error:
        if is_storage_fault(cell, error):
            with suppress(OSError):
                recorder.close()
            raise storage_error(cell, error) from error
        recorder.close()
        return record_failure(cell, error, recorder.rounds_done)
    except BaseException:
        with suppress(OSError):  # the same process may run the cell again, and nothing may write there by then
            recorder.close()
        raise
    return None


def open_checkpoints(cell: Cell, config: dict[str, Any]) -> Checkpoints | None:
    """The cell's checkpoint, or None if its settings ask for none."""
    if not cell.task.args.checkpoint_every:
        return None
    logs = [cell.path / name for name in ("evals.jsonl", "rounds.jsonl")]
    key = run_key(config, project_sources(cell.task.agent, make_filter(cell)))
    return Checkpoints(cell.path, logs, key, cell.device)


def record_failure(cell: Cell, error: Exception, round: int | None) -> str:
    """Write `failure.json`, with what is needed to look at the failure, and return its sentence."""
    expected = isinstance(error, FilterError | TrainingError | UsageError)
    sentence = (str(error) if expected else f"{type(error).__name__}: {error}")[:LONGEST]
    trace = "".join(traceback.format_exception(error))[-LONGEST:]
    cell.path.mkdir(parents=True, exist_ok=True)
    failure = {"schema": SCHEMA, "error": sentence, "traceback": trace, "round": round}
    failure |= {"task": cell.task.id, "filter": cell.spec, "seed": cell.seed, "device": cell.device}
    failure |= {"checkpoint": last_checkpoint(cell), "provenance": provenance(cell.device, jobs=cell.jobs)}
    write_json(cell.path / "failure.json", failure)
    return sentence


def last_checkpoint(cell: Cell) -> str | None:
    """The name of the newest checkpoint in the cell's folder, or None."""
    files = sorted(cell.path.glob("checkpoint*"), key=lambda file: file.stat().st_mtime_ns)
    return files[-1].name if files else None


def is_storage_fault(cell: Cell, error: Exception) -> bool:
    """Whether an error says that the output folder can't be written to, rather than anything about the cell."""
    if not isinstance(error, OSError):
        return False
    return error.errno in STORAGE or str(error.filename or "").startswith(str(cell.out))


def storage_error(cell: Cell, error: Exception) -> StorageError:
    """The sentence for it."""
    reason = getattr(error, "strerror", None) or str(error)
    return StorageError(
        f"can't write to {cell.out} ({reason}); what is complete stays so: mend that, for example make space, "
        "and run the same command again"
    )
