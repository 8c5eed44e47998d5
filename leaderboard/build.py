"""What does the leaderboard say now? `python -m leaderboard.build` makes LEADERBOARD.md and the static site."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from leaderboard.board.markdown import leaderboard_markdown
from leaderboard.board.pages import GENERATOR, site_files
from leaderboard.board.rows import EntrySummary, Ranking, rankings, summarise
from leaderboard.claims.site import claims_page
from leaderboard.entries.submission import read_entry
from leaderboard.runs.interrupts import ignore_interruptions, interruptions_held_back

SHARE = 4
"""entries that are worth another process"""


@dataclass(frozen=True)
class Args:
    """Make LEADERBOARD.md and the static site from the accepted submissions."""

    submissions: Path = Path("leaderboard/submissions")
    """the folder that holds a JSON file for each entry"""
    out: Path = Path("site")
    """the folder of the site; what an earlier build left there is replaced"""
    markdown: Path = Path("LEADERBOARD.md")
    """where the tables for reading on a forge go"""


def read_summaries(folder: Path) -> list[EntrySummary]:
    """All entries of a folder, sorted by key, and what the board says of each; many are shared among processes.

    Raises:
        UsageError: if there is no such folder, or one of its files is no submission or can't be compared.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the one that holds the submissions")
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stem)
    workers = min(os.cpu_count() or 1, len(paths) // SHARE)
    if workers < 2:
        return [_read_summary(path) for path in paths]
    # a fresh interpreter each: a copy of one that runs threads may hang
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=ignore_interruptions)
    try:
        with interruptions_held_back():
            futures = [pool.submit(_read_summary, path) for path in paths]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)


def _read_summary(path: Path) -> EntrySummary:
    return summarise(read_entry(path))


def build(summaries: Iterable[EntrySummary], *, out: Path, markdown: Path) -> tuple[Ranking, ...]:
    """Write the board.

    Args:
        summaries: its entries.
        out: the folder of the site, new, empty or an earlier build's.
        markdown: the Markdown file.

    Raises:
        UsageError: if `out` holds something else, or a folder can't be written to.
    """
    _refuse_foreign(out)
    board = rankings(summaries)
    try:
        _write_site(out, board)
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(leaderboard_markdown(board), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"the board can't be written ({error}); choose other places with --out and --markdown"
        ) from error
    return board


def _refuse_foreign(out: Path) -> None:
    """A site is replaced as a whole, so nothing but a site may stand in its place."""
    index = out / "index.html"
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is no folder; choose another one with --out")
    if not out.exists() or not any(out.iterdir()):
        return
    if not index.is_file() or GENERATOR not in index.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"{out} holds something else than a site of this command; choose another folder with --out")


def _write_site(out: Path, board: tuple[Ranking, ...]) -> None:
    """Write next to `out`, then swap: a build that fails leaves the earlier site as it was."""
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.absolute().parent))
    try:
        entries = [summary.entry for ranking in board for summary in ranking.entries]
        for name, content in (*site_files(board), claims_page(entries)):
            file = fresh / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(content, encoding="utf-8", newline="\n")
        fresh.chmod(0o777 & ~_umask())
        if out.exists():
            shutil.rmtree(out)
        os.replace(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _umask() -> int:
    """A temporary folder is for its owner alone; a site is for everyone that new files are for."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def main() -> int:
    """The command; returns the exit code."""
    args = tyro.cli(Args, prog="python -m leaderboard.build")
    _refuse_foreign(args.out)  # before the work rather than after
    board = build(read_summaries(args.submissions), out=args.out, markdown=args.markdown)
    entries = sum(len(ranking.entries) for ranking in board)
    print(f"{args.markdown} and {args.out / 'index.html'} show {entries} entries in {len(board)} suites")
    for summary in (summary for ranking in board for summary in ranking.entries):
        for problem in summary.problems:
            print(f"warning: {summary.entry.key}: {problem}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main))
