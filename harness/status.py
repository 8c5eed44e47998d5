"""How far are the runs in a folder? `python -m harness.status runs/` says, also while they run."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from filters.errors import UsageError, run_command
from harness.checks.states import STATES, CellState, look
from leaderboard.runs.store import find_cells, printable


@dataclass(frozen=True)
class Args:
    """Count the cells below a folder: complete, running, failed, interrupted, damaged."""

    runs: tyro.conf.Positional[Path]
    """the folder that the runs were written to"""
    json: bool = False
    """print a list of all cells in JSON instead of a table"""


def main(argv: list[str] | None = None) -> int:
    """Print the table, then what runs and what failed; exit code 1 if a cell has failed or is damaged."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.status", description=__doc__)
    if not args.runs.is_dir():
        raise UsageError(f"{args.runs} is no folder; give the one that the runs were written to")
    states = [look(path) for path in find_cells(args.runs)]
    if args.json:
        print(json.dumps([asdict(state) for state in states]))
    else:
        show(states)
    return int(any(state.status in ("failed", "damaged") for state in states))


def show(states: list[CellState]) -> None:
    """Print the table, then a line for each cell that runs, failed or is damaged."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(count(states))
    for state in states:
        if state.status == "running" or state.error:
            what = state.error or f"{state.rounds_done} rounds done"
            line = f"{state.task} {state.filter} seed {state.seed}: {state.status}, {' '.join(what.split())}"
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def count(states: Iterable[CellState]) -> Table:
    """A row for each task and filter."""
    table = Table(title="cells", title_justify="left")
    for column in ("task", "filter", *STATES):
        table.add_column(column, justify="left" if column in ("task", "filter") else "right", overflow="fold")
    rows: dict[tuple[str, str], list[str]] = {}
    for state in states:
        rows.setdefault((state.task, state.filter), []).append(state.status)
    for (task, spec), found in rows.items():
        table.add_row(task, spec, *(str(found.count(name) or "–") for name in STATES))
    return table


if __name__ == "__main__":
    sys.exit(run_command(main))
