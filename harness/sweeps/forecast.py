"""What would a sweep run, how long may it take, and how much disk does it need?"""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from filters.errors import UsageError
from harness.cells.cell import Cell, is_complete, is_failed
from harness.tasks.task import Task
from leaderboard.runs.jsonfile import field, finite
from leaderboard.runs.store import find_cells, read_config, read_run, status

WORK_PER_SECOND = 25_000.0
"""records through environment and update in a second on one core, where no past run says better: a rough figure"""
START_SECONDS = 3.0
"""what a cell needs besides"""
CELL_BYTES, ROUND_BYTES, EPISODE_BYTES = 6_000, 1_100, 10
"""what a cell leaves on disk: once, a round, and an evaluation episode"""


@dataclass(frozen=True)
class Past:
    """What complete cells of one task took."""

    seconds: dict[str, float]
    """mean seconds of a cell, by filter"""
    bytes: float
    """mean bytes of a cell"""


def print_forecast(cells: Sequence[Cell], *, jobs: int, out: Path, console: Console) -> None:
    """Print a table with a row a task, then the total.

    Args:
        cells: the whole sweep.
        jobs: cells side by side.
        out: where they go; need not exist.
        console: where to print.

    Raises:
        UsageError: a cell's folder holds a run of other settings or is damaged.
    """
    table = Table(title="what would run", title_justify="left")
    for column in ("task", "cells", "complete", "failed", "to run", "minutes a cell", "known from"):
        table.add_column(column, justify="left" if column in ("task", "known from") else "right")
    seconds, disk = list[float](), 0.0
    for task in dict.fromkeys(cell.task for cell in cells):
        group = [cell for cell in cells if cell.task == task]
        done, failed = sum(map(is_complete, group)), sum(map(is_failed, group))
        left = [cell for cell in group if not is_complete(cell) and not is_failed(cell)]
        past = find_past(group[0].path.parent.parent)
        each = [cell_seconds(cell, past) for cell in group]
        seconds += [cell_seconds(cell, past) for cell in left]
        disk += len(left) * (past.bytes if past else cell_bytes(task))
        source = "past runs" if past else "a rough figure"
        numbers = (str(len(group)), str(done), str(failed), str(len(left)), f"{mean(each) / 60:.1f}")
        table.add_row(task.id, *numbers, source)
    console.print(table)
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    console.print(
        f"{len(seconds)} cells to run, {jobs} side by side: about {makespan(seconds, jobs) / 60:.1f} min; "
        f"about {disk / 1e6:.1f} MB of disk, {shutil.disk_usage(there).free / 1e6:,.0f} MB are free",
        soft_wrap=True,
    )


def makespan(seconds: Iterable[float], jobs: int) -> float:
    """Seconds until all are done, if `jobs` workers take them in order."""
    ends = [0.0] * jobs
    for duration in seconds:
        ends[ends.index(min(ends))] += duration
    return max(ends)


def cell_seconds(cell: Cell, past: Past | None) -> float:
    """Expected seconds: of past cells with this filter, else of this task's, else by the amount of work."""
    if past is None:
        return START_SECONDS + cell.task.work / WORK_PER_SECOND
    return past.seconds.get(cell.spec, mean(past.seconds.values()))


def cell_bytes(task: Task) -> float:
    """Bytes that a cell of the task leaves on disk."""
    evaluations = -(-task.args.rounds // task.args.eval_every)
    return CELL_BYTES + ROUND_BYTES * task.args.rounds + EPISODE_BYTES * evaluations * task.args.eval_episodes


def find_past(folder: Path) -> Past | None:
    """What the complete cells in a task's folder took; None if there is none. Damaged ones don't count."""
    seconds: dict[str, list[float]] = {}
    sizes: list[int] = []
    for path in find_cells(folder):
        if status(path) == "complete":
            with suppress(UsageError, OSError):
                file = path / "run.json"
                spent = sum(finite(field(read_run(path), "seconds", dict, file).values(), "seconds", file))
                seconds.setdefault(read_config(path)["filter"], []).append(spent)
                sizes.append(sum(entry.lstat().st_size for entry in path.iterdir()))
    return Past({spec: mean(values) for spec, values in seconds.items()}, mean(sizes)) if sizes else None
