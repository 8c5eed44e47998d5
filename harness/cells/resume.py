"""When does a cell go on from its checkpoint, and what else has to be as it was at that moment?"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from algos.training.checkpoint import FILE, CheckpointError, load, read_seconds, restore, save
from algos.training.clock import PHASES, Clock
from filters.errors import UsageError
from harness.cells.provenance import hardware, packages
from leaderboard.runs.store import read_config


def run_key(config: dict[str, Any], sources: dict[str, str]) -> str:
    """What a run's two halves have to share: settings, code and packages; not the processor, which is recorded."""
    made_of = {
        "config": config,
        "sources": sources,
        "python": platform.python_version(),
        "packages": packages(),
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


@dataclass
class Checkpoints:
    """The checkpoint of one cell and the logs that grow beside it.

    Going on cuts the logs back to what they held when the checkpoint was made, so a round is never in them twice.
    """

    folder: Path
    logs: Sequence[Path]
    """files that only grow, a line at a time"""
    key: str
    """`run_key` of the cell; the checkpoint of another is never taken"""
    device: str
    stretches: list[dict[str, Any]] = field(default_factory=list)
    """what computed the run, from which round on; one entry unless it was interrupted"""

    @property
    def path(self) -> Path:
        """The checkpoint."""
        return self.folder / FILE

    def save(self, state: Any, clock: Clock) -> None:
        """Make logs and checkpoint durable, in this order; raises OSError if the disk does not take them."""
        extra = {
            "key": self.key,
            "seconds": {name: clock.seconds[name] for name in PHASES},
            "logs": {path.name: measure(path) for path in self.logs},
            "stretches": json.dumps(self.stretches),
        }
        save(self.path, state, extra)

    def restore(self, state: Any, clock: Clock) -> bool:
        """Put the checkpoint into `state` and the time that it took into `clock`; False if the run has to start over.

        A checkpoint that is damaged or of another run costs a line on stderr, never the run.
        """
        found = False
        if self.path.exists():
            try:
                self._restore(state, clock)
                found = True
            except CheckpointError as error:
                print(f"{self.folder} starts over: {error}", file=sys.stderr, flush=True)
        if not found:
            self._start_over()
        self.stretches.append({"from_round": state.round, **hardware(self.device)})
        return found

    def _restore(self, state: Any, clock: Clock) -> None:
        content = load(self.path, state)
        try:
            extra = content["extra"]
            key, seconds = extra["key"], read_seconds(extra["seconds"])
            logs = {path: (int(extra["logs"][path.name][0]), extra["logs"][path.name][1]) for path in self.logs}
            stretches = list(json.loads(extra["stretches"]))
        except CheckpointError:
            raise
        except Exception as error:  # whatever a crafted file may make the lines above raise
            raise CheckpointError(f"{self.path} is damaged") from error
        if key != self.key:
            raise CheckpointError(f"{self.path} was made with other settings, other code or other packages")
        for path, (length, digest) in logs.items():
            if not 0 <= length <= path.stat().st_size or measure(path, length) != (length, digest):
                raise CheckpointError(f"{path} is not what it was when {self.path.name} was made")
        restore(state, content)
        for path, (length, _) in logs.items():
            os.truncate(path, length)
        for name, spent in seconds.items():
            clock.seconds[name] += spent
        self.stretches = stretches

    def _start_over(self) -> None:
        for path in self.logs:
            os.truncate(path, 0)
        for path in [self.path, *self.folder.glob("events.out.tfevents*")]:
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the checkpoint of a run that is complete."""
        self.path.unlink(missing_ok=True)


def measure(path: Path, most: int = -1) -> tuple[int, str]:
    """Length and SHA-256 of a log, or of its first `most` bytes; they are on the disk before this returns."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        text = file.read(most)
    return len(text), hashlib.sha256(text).hexdigest()


def can_go_on(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the folder holds an interrupted run of the very same settings and a checkpoint; says so if others."""
    if not (folder / FILE).is_file():
        return False
    try:
        # A link could have the logs appended to, or cut back, anywhere else; a pipe would never end.
        plain = all(not path.is_symlink() and (path.is_file() or path.is_dir()) for path in folder.iterdir())
        same = plain and read_config(folder) == config
    except (OSError, UsageError):
        same = False
    if not same:
        print(f"{folder} starts over: its checkpoint is of other settings", file=sys.stderr, flush=True)
    return same


def clear_leftovers(folder: Path) -> None:
    """Delete what an interruption or a failure left beside the logs and the checkpoint."""
    for path in [folder / "failure.json", *folder.glob(".*.tmp")]:
        path.unlink(missing_ok=True)
