"""How does one (task, filter, seed) become a run directory?"""

import hashlib
import json
import shutil
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from filters.api import Filter
from filters.errors import FilterError, TrainingError, UsageError
from filters.registry import make
from harness.provenance import provenance, source_of, text_hash
from harness.record import RunRecorder
from harness.resume import Checkpoints, can_go_on, clear_leftovers, run_key
from harness.store import SCHEMA, cell_dir, status, write_json
from harness.tasks import Task


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
        "args": asdict(replace(cell.task.args, seed=cell.seed, device=cell.device)),
        "references": cell.task.references,
    }
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
    file = cell.path / "config.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read; delete {cell.path} and run the same command again") from error
    wanted = describe(cell)
    different = sorted(key for key in wanted if not isinstance(found, dict) or found.get(key) != wanted[key])
    if different:
        raise UsageError(
            f"{cell.path} holds a run with other settings ({', '.join(different)} differ); "
            "choose another --out or delete that folder"
        )
    return True


def run_cell(cell: Cell, progress: Callable[[int, int], None]) -> str | None:
    """Run a cell, from its checkpoint if it has one, and leave its directory complete or failed.

    Args:
        cell: what to run.
        progress: called with (rounds done, rounds in all) after every round.

    Returns:
        None, or the sentence that says why it failed.
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
        cell.task.module.train(args, filter, recorder, cell.task.apply)
        recorder.finish(
            provenance(cell.device, jobs=cell.jobs), filter_source=None if source is None else text_hash(source)
        )
    except Exception as error:
        recorder.close()
        return record_failure(cell, error, recorder.rounds_done)
    return None


def open_checkpoints(cell: Cell, config: dict[str, Any]) -> Checkpoints | None:
    """The cell's checkpoint, or None if its settings ask for none."""
    if not cell.task.args.checkpoint_every:
        return None
    logs = [cell.path / name for name in ("evals.jsonl", "rounds.jsonl")]
    return Checkpoints(cell.path, logs, run_key(config, make_filter(cell)), cell.device)


def record_failure(cell: Cell, error: Exception, round: int | None) -> str:
    """Write `failure.json` and return its sentence."""
    expected = isinstance(error, FilterError | TrainingError | UsageError)
    sentence = str(error) if expected else f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    cell.path.mkdir(parents=True, exist_ok=True)
    failure = {"schema": SCHEMA, "error": sentence, "traceback": trace, "round": round}
    write_json(cell.path / "failure.json", failure)
    return sentence
