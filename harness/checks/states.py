"""How far is each cell of a folder of runs? Looks at what is on disk, also while cells run, and changes nothing."""

from dataclasses import dataclass
from pathlib import Path

from filters.errors import UsageError
from harness.cells.lock import is_locked
from leaderboard.runs.jsonfile import LINE_BYTES, LINES_BYTES, Regular
from leaderboard.runs.store import printable, read_digests, read_failure, status

STATES = ("complete", "running", "failed", "incomplete", "damaged")


@dataclass(frozen=True)
class CellState:
    """How far one cell is."""

    task: str
    filter: str
    seed: int
    status: str
    """one of STATES"""
    rounds_done: int
    error: str | None
    """why it failed, or what is damaged"""


def look(path: Path) -> CellState:
    """The state of the cell in `path`; changes nothing."""
    state = state_of(path)
    try:
        found = read_failure(path)
        if state == "complete":
            read_digests(path)
    except UsageError as damage:
        names = [printable(part) for part in path.absolute().parts[-3:]]
        return CellState(names[0], names[1], int(path.name[5:]), "damaged", 0, printable(str(damage)))
    error = found.error if state == "failed" else None
    return CellState(found.task, found.spec, found.seed, state, rounds_done(path), error)


def state_of(path: Path) -> str:
    """The cell's status on disk, or `running` if some process is at it."""
    return "running" if is_locked(path) else status(path)


def rounds_done(path: Path) -> int:
    """Lines of rounds.jsonl so far."""
    try:
        return sum(1 for _ in Regular(path / "rounds.jsonl", LINES_BYTES).lines(LINE_BYTES))
    except UsageError:
        return 0
