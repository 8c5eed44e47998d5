"""What is a run directory, when is it complete, and which numbers does it hold?

One cell is one (task, filter, seed) in `<out>/<task>/<filter spec>/seed-<s>/`:

    config.json    everything needed to run the cell again
    evals.jsonl    a line per checkpoint: round, step, training seconds so far, each episode's return, length
    rounds.jsonl   a line per round: kept fraction, optimizer steps, losses, seconds of each phase
    run.json       totals and provenance, written last by rename: its presence means complete
    failure.json   the error of a cell that failed
"""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from algos.clock import TRAINING
from filters.errors import UsageError

SCHEMA = 1
FILES = ("config.json", "evals.jsonl", "rounds.jsonl", "run.json", "failure.json")
UNFINISHED = "not finished; run the same command again to finish it"

Status = Literal["complete", "failed", "incomplete"]
Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class CellRun:
    """A complete cell as arrays: K checkpoints, R rounds."""

    path: Path
    config: Json
    """config.json as it stands"""
    task: str
    spec: str
    """the filter as it was asked for, `iif:fraction=0.25`"""
    seed: int
    steps: NDArray[np.int64]
    """[K] environment steps before each checkpoint, strictly increasing, above 0"""
    seconds: NDArray[np.float64]
    """[K] training seconds before each checkpoint (environment, inference, filter, update), above 0"""
    returns: tuple[NDArray[np.float64], ...]
    """K arrays [E]: the return of every evaluation episode"""
    kept: NDArray[np.float64]
    """[R] share of the rollout that the update could use"""
    optimizer_steps: NDArray[np.int64]
    """[R] minibatch updates"""
    skipped_rounds: int
    """rounds without an update because the filter kept too little"""
    phase_seconds: dict[str, float]
    """seconds of the whole run, by phase"""
    references: dict[str, float]
    """the task's fixed returns of a `random` and of a `solved` policy"""
    lengths: tuple[NDArray[np.int64], ...] = ()
    """K arrays [E]: the steps of every evaluation episode"""
    provenance: Json = field(default_factory=dict)
    """code, packages and hardware, as in run.json"""
    filter_source: str | None = None
    """SHA-256 of the file that the filter's class came from; None where the run did not record it"""

    corruption: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """[R] a name of `harness.detection`, NaN where nothing can be said; empty where no record was made harmful"""

    @cached_property
    def curve(self) -> NDArray[np.float64]:
        """[K] mean evaluation return of each checkpoint."""
        return np.array([episodes.mean() for episodes in self.returns])

    @property
    def training_seconds(self) -> float:
        """Seconds of the whole run in environment, inference, filter and update."""
        return sum(self.phase_seconds.get(phase, 0.0) for phase in TRAINING)


@dataclass(frozen=True)
class CellFailure:
    """A cell that has no results, and why."""

    path: Path
    task: str
    spec: str
    seed: int
    error: str
    """one sentence"""
    round: int | None
    """the round in which it failed, if it got that far"""


def cell_dir(out: Path, task_id: str, spec: str, seed: int) -> Path:
    """The folder of a cell; distinct specs get distinct folders and none leads outside `out`."""
    return out / _folder(task_id.replace("/", "-")) / _folder(spec) / f"seed-{seed}"


def write_json(path: Path, obj: Any) -> None:
    """Write `obj` to `path` so that a reader sees the old file or the whole new one, even after a crash.

    Raises:
        ValueError: if a number is NaN or infinite; nothing is written then.
        OSError: if the folder can't be written to.
    """
    text = json.dumps(obj, indent=2, allow_nan=False) + "\n"
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def status(path: Path) -> Status:
    """Whether the cell in `path` is complete, failed, or neither (never started, or interrupted)."""
    if (path / "run.json").is_file():
        return "complete"
    return "failed" if (path / "failure.json").is_file() else "incomplete"


def find_cells(root: Path) -> list[Path]:
    """All cells at or below `root`, whatever their status, sorted by task, filter and seed."""
    candidates = [root, *root.rglob("seed-*")]
    return sorted((path for path in candidates if _is_cell(path)), key=lambda path: (path.parent, _seed(path)))


def read_cell(path: Path) -> CellRun:
    """Read a complete cell.

    Raises:
        UsageError: if it is not complete or a file is damaged; names the file and the remedy.
    """
    if status(path) != "complete":
        raise UsageError(f"{path} holds no complete run: {UNFINISHED}")
    run = _read_object(path / "run.json")
    config = _read_config(path)
    evals, rounds = path / "evals.jsonl", path / "rounds.jsonl"
    checkpoints, log = _read_lines(evals), _read_lines(rounds)
    references = _field(config, "references", dict, path / "config.json")
    return CellRun(
        path=path,
        config=config,
        task=config["task"],
        spec=config["filter"],
        seed=config["seed"],
        steps=_axis([_field(line, "step", int, evals) for line in checkpoints], evals),
        seconds=_seconds([_number(line, "seconds", evals) for line in checkpoints], evals),
        returns=tuple(_episodes(line, evals) for line in checkpoints),
        kept=np.array([_number(line, "kept", rounds) for line in log]),
        optimizer_steps=np.array([_field(line, "optimizer_steps", int, rounds) for line in log], dtype=np.int64),
        skipped_rounds=sum(_field(line, "skipped", bool, rounds) for line in log),
        phase_seconds=_totals([_field(line, "seconds", dict, rounds) for line in log], rounds),
        references={name: _number(references, name, path / "config.json") for name in ("random", "solved")},
        lengths=tuple(_lengths(line, evals) for line in checkpoints),
        provenance=_field(run, "provenance", dict, path / "run.json"),
        corruption=_corruption(log, rounds),
        filter_source=None
        if run.get("filter_source") is None
        else _field(run, "filter_source", str, path / "run.json"),
    )


def read_failure(path: Path) -> CellFailure:
    """Read why the cell in `path` has no results: its failure, or that it was interrupted.

    Raises:
        UsageError: if a file is damaged; names the file and the remedy.
    """
    task, spec, seed = _identity(path)
    if not (path / "failure.json").is_file():
        return CellFailure(path, task, spec, seed, UNFINISHED, None)
    file = path / "failure.json"
    failure = _read_object(file)
    error = _field(failure, "error", str, file)
    number = None if failure.get("round") is None else _field(failure, "round", int, file)
    return CellFailure(path, task, spec, seed, error, number)


def _folder(name: str) -> str:
    quoted = quote(name, safe=":=,@")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def _seed(path: Path) -> int:
    found = re.fullmatch(r"seed-(\d+)", path.name)
    return int(found[1]) if found else -1


def _is_cell(path: Path) -> bool:
    return _seed(path) >= 0 and any((path / name).is_file() for name in FILES)


def _identity(path: Path) -> tuple[str, str, int]:
    """Task, spec and seed; from the folder names if the cell failed before it could write its config."""
    if (path / "config.json").is_file():
        config = _read_config(path)
        return config["task"], config["filter"], config["seed"]
    path = path.absolute()
    task = re.sub(r"-(v\d+)(?=@|$)", r"/\1", unquote(path.parent.parent.name))
    return task, unquote(path.parent.name), _seed(path)


def _damaged(file: Path, what: str) -> UsageError:
    return UsageError(f"{file} {what}; delete {file.parent} and run the same command again")


def _parse(text: str, file: Path) -> Json:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise _damaged(file, "is truncated or not JSON") from error
    if not isinstance(parsed, dict):
        raise _damaged(file, "does not hold a JSON object where one belongs")
    return parsed


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise _damaged(file, "is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(file, f"can't be read ({error})") from error


def _read_object(file: Path) -> Json:
    parsed = _parse(_read_text(file), file)
    if parsed.get("schema") != SCHEMA:
        raise _damaged(file, f"has schema {parsed.get('schema')!r}, but this version reads schema {SCHEMA}")
    return parsed


def _read_config(path: Path) -> Json:
    file = path / "config.json"
    config = _read_object(file)
    for key in ("task", "filter", "filter_class", "apply", "device", "agent"):
        _field(config, key, str, file)
    for key in ("args", "filter_fields", "references"):
        _field(config, key, dict, file)
    _field(config, "seed", int, file)
    return config


def _read_lines(file: Path) -> list[Json]:
    lines = [_parse(line, file) for line in _read_text(file).splitlines()]
    if not lines:
        raise _damaged(file, "is empty")
    return lines


def _field(record: Json, key: str, kind: type, file: Path) -> Any:
    if key not in record:
        raise _damaged(file, f"lacks {key!r}")
    # JSON's true would pass for an int
    if not isinstance(record[key], kind) or (kind is int and isinstance(record[key], bool)):
        raise _damaged(file, f"has {record[key]!r} as {key!r} instead of a value of type {kind.__name__}")
    return record[key]


def _number(record: Json, key: str, file: Path) -> float:
    if key not in record:
        raise _damaged(file, f"lacks {key!r}")
    return _finite([record[key]], key, file)[0]


def _finite(values: Iterable[Any], key: str, file: Path) -> list[float]:
    numbers = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _damaged(file, f"has {value!r} in {key!r} instead of a finite number")
        numbers.append(float(value))
    return numbers


def _episodes(line: Json, file: Path) -> NDArray[np.float64]:
    episodes = _finite(_field(line, "returns", list, file), "returns", file)
    if not episodes:
        raise _damaged(file, "has a checkpoint without an episode")
    return np.array(episodes)


def _lengths(line: Json, file: Path) -> NDArray[np.int64]:
    lengths = _field(line, "lengths", list, file)
    if len(lengths) != len(line["returns"]):
        raise _damaged(file, "has a checkpoint with more returns than lengths, or fewer")
    return np.array([_field({"lengths": length}, "lengths", int, file) for length in lengths], dtype=np.int64)


def _axis(steps: list[int], file: Path) -> NDArray[np.int64]:
    axis = np.array(steps, dtype=np.int64)
    if axis[0] <= 0 or np.any(np.diff(axis) <= 0):
        raise _damaged(file, "has steps that do not increase from line to line")
    return axis


def _seconds(seconds: list[float], file: Path) -> NDArray[np.float64]:
    axis = np.array(seconds)
    if axis[0] <= 0 or np.any(np.diff(axis) < 0):
        raise _damaged(file, "has seconds that are not positive or run backwards")
    return axis


def _corruption(rounds: list[Json], file: Path) -> dict[str, NDArray[np.float64]]:
    found = [_field(line, "corruption", dict, file) for line in rounds if "corruption" in line]
    if not found:
        return {}
    if len(found) < len(rounds) or any(numbers.keys() != found[0].keys() for numbers in found):
        raise _damaged(file, "says of some rounds only how records were corrupted")
    return {
        name: np.array([np.nan if one[name] is None else _number(one, name, file) for one in found])
        for name in found[0]
    }


def _totals(rounds: list[Json], file: Path) -> dict[str, float]:
    phases = sorted({phase for seconds in rounds for phase in seconds})
    return {phase: sum(_number({phase: 0.0, **seconds}, phase, file) for seconds in rounds) for phase in phases}
