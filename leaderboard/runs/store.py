"""What is a run directory, when is it complete, and which numbers does it hold?

One cell is one (task, filter, seed) in `<out>/<task>/<filter spec>/seed-<s>/`:

    config.json    everything needed to run the cell again
    evals.jsonl    a line per checkpoint: round, step, training seconds so far, each episode's return, length
    rounds.jsonl   a line per round: kept fraction, optimizer steps, losses, seconds of each phase
    run.json       totals, provenance and the other files' SHA-256, written last by rename: its presence means complete
    failure.json   the error of a cell that failed, with what is needed to look at it
"""

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from filters.errors import UsageError
from leaderboard.runs.columns import read_checkpoints, read_rounds
from leaderboard.runs.jsonfile import Json, damaged, field, number, read_lines, read_object, word
from leaderboard.runs.sharing import Shared

SCHEMA = 1
PHASES = ("startup", "environment", "inference", "filter", "update", "evaluation", "logging")
"""what a run's time is booked on"""
TRAINING = ("environment", "inference", "filter", "update")
"""the phases that count as training time"""
FILES = ("config.json", "evals.jsonl", "rounds.jsonl", "run.json", "failure.json")
HASHED = ("config.json", "evals.jsonl", "rounds.jsonl")
"""the files whose digests are in run.json"""
DEPTH = 12
"""folders below which no cell is looked for"""
UNFINISHED = "not finished; run the same command again to finish it"

Status = Literal["complete", "failed", "incomplete"]


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
    """K arrays [E]: the return of every evaluation episode; of the last checkpoint or none where `means` sums up"""
    kept: NDArray[np.float64]
    """[R] share of the rollout that the update could use"""
    optimizer_steps: NDArray[np.int64]
    """[R] minibatch updates"""
    skipped_rounds: int
    """rounds without an update because the filter kept too little"""
    phase_seconds: dict[str, float]
    """seconds of the whole run, by phase"""
    references: dict[str, float]
    """the task's fixed returns of a `random` and of a `solved` policy; NaN where only the runs can say"""
    lengths: tuple[NDArray[np.int64], ...] = ()
    """the steps of the same episodes"""
    means: NDArray[np.float64] | None = None
    """[K] mean evaluation return of each checkpoint, where the episodes of all are not at hand"""
    provenance: Json = dataclasses.field(default_factory=dict)
    """code, packages and hardware, as in run.json"""
    filter_source: str | None = None
    """SHA-256 of the file that the filter's class came from; None where the run did not record it"""

    compiled: bool | None = None
    """whether the optimizer step was compiled in the end; None where the run did not record it"""
    corruption: Mapping[str, NDArray[np.float64]] = dataclasses.field(default_factory=dict)
    """[R] a name of `harness.cells.detection`, NaN where nothing can be said; empty where no record was made harmful"""

    @cached_property
    def curve(self) -> NDArray[np.float64]:
        """[K] mean evaluation return of each checkpoint."""
        if self.means is not None:
            return self.means
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
    write_file(path, text.encode("utf-8"))


def write_file(path: Path, content: bytes) -> None:
    """Write a file as `write_json` does; raises OSError if the folder can't be written to."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def status(path: Path) -> Status:
    """Whether the cell in `path` is complete, failed, or neither (never started, or interrupted)."""
    if (path / "run.json").is_file():
        return "complete"
    return "failed" if (path / "failure.json").is_file() else "incomplete"


def find_cells(root: Path) -> list[Path]:
    """All cells at or below `root`, whatever their status, sorted by task, filter and seed. Follows no links."""
    found = []
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        if _is_cell(folder):
            found.append(folder)
        if depth < DEPTH:
            waiting += [(Path(below), depth + 1) for below in _folders(folder)]
    return sorted(found, key=lambda path: (path.parent, _seed(path)))


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def read_cell(path: Path, *, episodes: bool = True, shared: Shared | None = None) -> CellRun:
    """Read a complete cell.

    Args:
        path: its folder.
        episodes: keep every evaluation episode rather than the mean of each checkpoint alone.
        shared: what cells that are read together have in common.

    Raises:
        UsageError: if it is not complete or a file is damaged; names the file and the remedy.
    """
    if status(path) != "complete":
        raise UsageError(f"{path} holds no complete run: {UNFINISHED}")
    shared = shared or Shared()
    file, evals, rounds = (path / name for name in ("run.json", "evals.jsonl", "rounds.jsonl"))
    run = read_run(path)
    provenance = field(run, "provenance", dict, file)
    digests = digests_of(run, file)
    config = shared.fields(read_config(path, sha256=digests.get("config.json")))
    checkpoints = read_checkpoints(read_lines(evals, sha256=digests.get("evals.jsonl")), evals, episodes=episodes)
    log = read_rounds(list(read_lines(rounds, sha256=digests.get("rounds.jsonl"))), rounds)
    return CellRun(
        path=path,
        config=config,
        task=config["task"],
        spec=config["filter"],
        seed=config["seed"],
        steps=shared.axis(checkpoints.steps),
        seconds=checkpoints.seconds,
        returns=checkpoints.returns,
        means=None if episodes else checkpoints.means,
        kept=log.kept,
        optimizer_steps=log.optimizer_steps,
        skipped_rounds=log.skipped,
        phase_seconds=log.phase_seconds,
        references=_references(config["references"], path / "config.json"),
        lengths=checkpoints.lengths,
        # sources differ by filter
        provenance=shared.value({name: said for name, said in provenance.items() if name != "sources"}),
        corruption=log.corruption,
        compiled=None if run.get("compiled") is None else field(run, "compiled", bool, file),
        filter_source=None if run.get("filter_source") is None else field(run, "filter_source", str, file),
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
    failure = read_object(file, schema=SCHEMA)
    error = printable(field(failure, "error", str, file))
    number = None if failure.get("round") is None else field(failure, "round", int, file)
    return CellFailure(path, task, spec, seed, error, number)


def read_run(path: Path) -> Json:
    """`run.json` of the complete cell in `path`; raises UsageError if it is damaged."""
    return read_object(path / "run.json", schema=SCHEMA)


def read_digests(path: Path) -> dict[str, str]:
    """By name, what the files of a complete cell hash to; empty for a run older than that.

    Raises:
        UsageError: if `run.json` is damaged or was edited.
    """
    return digests_of(read_run(path), path / "run.json")


def digests_of(run: Json, file: Path) -> dict[str, str]:
    """The same of a `run.json` that was read already."""
    digests = field({"files": {}} | run, "files", dict, file)
    if digests and run.get("digest") != seal(run):
        raise damaged(file, "is not what the run wrote: it was edited or mixed up")
    return {name: word(digests, name, file) for name in HASHED if digests}


def seal(run: Json) -> str:
    """SHA-256 of all that `run.json` says but this; it finds accidents, not a forger, who can hash as well."""
    rest = {key: value for key, value in run.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_config(path: Path, *, sha256: str | None = None) -> Json:
    """`config.json` of the cell in `path`.

    Raises:
        UsageError: if it is damaged, or hashes to something else than `sha256`.
    """
    file = path / "config.json"
    config = read_object(file, schema=SCHEMA, sha256=sha256)
    for key in ("task", "filter", "filter_class", "apply", "device", "agent"):
        word(config, key, file)
    for key in ("args", "filter_fields", "references"):
        field(config, key, dict, file)
    field(config, "seed", int, file)
    return config


def printable(text: str) -> str:
    """The text without what could steer a terminal or can't be encoded."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def _folder(name: str) -> str:
    quoted = quote(name, safe=":=,@")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def _seed(path: Path) -> int:
    found = re.fullmatch(r"seed-([0-9]{1,18})", path.name)
    return int(found[1]) if found else -1


def _is_cell(path: Path) -> bool:
    try:
        return _seed(path) >= 0 and any((path / name).is_file() for name in FILES)
    except OSError:  # no leave to look
        return False


def _identity(path: Path) -> tuple[str, str, int]:
    """Task, spec and seed; from the folder names if the cell failed before it could write its config."""
    if (path / "config.json").is_file():
        config = read_config(path)
        return config["task"], config["filter"], config["seed"]
    path = path.absolute()
    task = re.sub(r"-(v\d+)(?=@|$)", r"/\1", unquote(path.parent.parent.name))
    return printable(task), printable(unquote(path.parent.name)), _seed(path)


def _references(said: Json, file: Path) -> dict[str, float]:
    unknown = "solved" in said and said["solved"] is None
    return {"random": number(said, "random", file), "solved": math.nan if unknown else number(said, "solved", file)}
