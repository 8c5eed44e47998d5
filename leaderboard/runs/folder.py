"""Which runs does a folder hold: complete ones, and cells without results?"""

from collections.abc import Sequence
from pathlib import Path

from filters.errors import UsageError
from leaderboard.runs.sharing import Shared
from leaderboard.runs.store import CellFailure, CellRun, find_cells, read_cell, read_failure, status


def load(paths: Path | Sequence[Path], *, episodes: bool = True) -> tuple[list[CellRun], list[CellFailure]]:
    """Read all cells below a folder, or exactly the cells whose folders are listed.

    Args:
        paths: a folder, or the folders of the cells.
        episodes: keep every evaluation episode; a comparison needs no more than the means.

    Returns:
        the complete cells, and those that failed, were interrupted or (if listed) never started.

    Raises:
        UsageError: if the folder does not exist or holds no runs, or a file is damaged.
    """
    folders = _below(paths) if isinstance(paths, Path) else list(paths)
    complete = {folder: status(folder) == "complete" for folder in folders}
    shared = Shared()
    cells = [read_cell(folder, episodes=episodes, shared=shared) for folder in folders if complete[folder]]
    return cells, [read_failure(folder) for folder in folders if not complete[folder]]


def _below(root: Path) -> list[Path]:
    if not root.is_dir():
        raise UsageError(f"{root} is no folder; give the one that the runs were written to")
    folders = find_cells(root)
    if not folders:
        raise UsageError(f"{root} holds no runs; `python -m harness.run --out {root}` makes some")
    return folders
