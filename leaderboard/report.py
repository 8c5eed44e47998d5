"""Which filter did better, and how sure is that? `python -m leaderboard.report runs/` says."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from filters.errors import run_command
from leaderboard.runs.folder import load
from leaderboard.statistics.comparison import Comparison, compare
from leaderboard.statistics.tables import Sheet, detection_sheets, legend, suite_sheets, task_sheets

WIDTH = 100
"""columns that the tables are laid out for where the output is no terminal"""
WORDS = ("Filter", "What happened")
"""the columns that hold words; the others hold numbers"""


@dataclass(frozen=True)
class Args:
    """Compare all runs below a folder: per task with the baseline, and over all tasks together."""

    runs: tyro.conf.Positional[Path]
    """the folder that the runs were written to"""
    markdown: bool = False
    """print Markdown instead of tables for the terminal"""
    baseline: str = "none"
    """the filter that the others are measured against"""


def render(comparison: Comparison, *, width: int = WIDTH) -> RenderableType:
    """The comparison for a terminal of `width` columns; numbers stay on one line from 100 columns on."""
    parts: list[RenderableType] = []
    for task in comparison.tasks:
        parts += [draw(sheet, width) for sheet in task_sheets(task, comparison.baseline)]
        parts += [Text(f"{task.task}: {problem}\n", style="red") for problem in task.problems]
        parts += [Text(f"{task.task}: {note}\n") for note in task.notes]
    parts += [draw(sheet, width) for sheet in (*detection_sheets(comparison), *suite_sheets(comparison))]
    parts += [Text(line, style="dim") for line in legend(comparison)]
    return Group(*parts)


def to_markdown(comparison: Comparison) -> str:
    """The comparison as GitHub Markdown."""
    blocks = []
    for task in comparison.tasks:
        blocks += [_markdown_table(sheet) for sheet in task_sheets(task, comparison.baseline)]
        blocks += [f"**{_escape(f'{task.task}: {problem}')}**" for problem in task.problems]
        blocks += [_escape(f"{task.task}: {note}") for note in task.notes]
    blocks += [_markdown_table(sheet) for sheet in (*detection_sheets(comparison), *suite_sheets(comparison))]
    blocks.append("\n".join(f"- {_escape(line)}" for line in legend(comparison)))
    return "\n\n".join(blocks) + "\n"


def print_report(
    paths: Path | Sequence[Path],
    *,
    baseline: str | None = "none",
    markdown: bool = False,
    console: Console | None = None,
) -> int:
    """Print the comparison of all cells below a folder, or of the listed cell folders.

    Args:
        paths: a folder, or the folders of the cells.
        baseline: None compares nothing and only lists results.
        markdown: print Markdown, to standard output.
        console: where to print otherwise; standard output by default.

    Returns:
        the exit code: 0, or 1 if a cell has no results or a comparison could not be computed.

    Raises:
        UsageError: if there is nothing to read, a file is damaged, or a cell is there twice.
    """
    cells, failures = load(paths, episodes=False)
    comparison = compare(cells, failures, baseline=baseline)
    if markdown:
        print(to_markdown(comparison), end="")
    else:
        console = console or Console(width=None if sys.stdout.isatty() else WIDTH)
        console.print(render(comparison, width=console.width))
    return 0 if comparison.whole else 1


def draw(sheet: Sheet, width: int) -> Table:
    """One table for a terminal of `width` columns."""
    table = Table(
        title=Text(sheet.title, style="bold") if sheet.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in sheet.columns:
        if column in WORDS:
            table.add_column(Text(column), overflow="fold")
        else:
            # specs wrap first; where that is not enough, a wrapped number is better than a cut one
            table.add_column(Text(column), justify="right", overflow="fold", no_wrap=width >= WIDTH)
    for row in sheet.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _markdown_table(sheet: Sheet) -> str:
    rule = ["---" if column in WORDS else "---:" for column in sheet.columns]
    columns, *rows = ([_escape(cell) for cell in row] for row in (sheet.columns, *sheet.rows))
    lines = [columns, rule, *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"### {_escape(sheet.title)}\n\n{table}"


def _escape(text: str) -> str:
    """One line that Markdown leaves as it is: a spec or an error may hold any character."""
    flat = " ".join(text.split()).replace("\\", "\\\\")
    for mark in "|*`<":
        flat = flat.replace(mark, f"\\{mark}")
    return flat


def main() -> int:
    """The command; returns the exit code."""
    args = tyro.cli(Args, prog="python -m leaderboard.report")
    return print_report(args.runs, baseline=args.baseline, markdown=args.markdown)


if __name__ == "__main__":
    sys.exit(run_command(main))
