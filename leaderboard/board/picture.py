"""How are an entry's learning curves drawn as one picture that stands alone, on light and on dark pages?"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from filters.errors import UsageError
from leaderboard.board.figures import learning_curve
from leaderboard.entries.submission import Entry
from leaderboard.runs.store import CellRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#666666", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""a grey for the baseline, then colours of the palette of Okabe and Ito"""
LINES = ("-", "--", "-.", (0, (1, 1)))
"""so that lines can be told apart without colour"""
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    # The same numbers give the same bytes.
    "svg.hashsalt": "filtergym",
    "svg.fonttype": "path",
}


def draw(entry: Entry, path: Path, *, titles: dict[str, str]) -> None:
    """Draw a panel for every task of an entry: each filter's mean return over steps, its 95 % t band, and every seed.

    Args:
        entry: whose curves.
        path: a .svg or .png, written anew.
        titles: of the panels, by task; the task's id where there is none.

    Raises:
        UsageError: matplotlib is not installed, or the file can't be written.
    """
    tasks = list(dict.fromkeys(cell.task for cell in entry.cells))
    with canvas(path, size=(4.6 * len(tasks), 3.4)) as figure:
        panels = figure.subplots(1, len(tasks), squeeze=False)[0]
        for panel, task in zip(panels, tasks, strict=True):
            _draw_task(panel, [cell for cell in entry.cells if cell.task == task])
            panel.set_title(titles.get(task, task))
            panel.set_xlabel("thousand environment steps")
            panel.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}")
        panels[0].set_ylabel("evaluation return")
        panels[0].legend(loc="upper left")


@contextmanager
def canvas(path: Path, *, size: tuple[float, float]) -> "Iterator[Figure]":
    """A figure to draw on, which is written when that is done; the same drawing gives the same bytes.

    Args:
        path: a .svg or .png, written anew.
        size: width and height in inches.

    Raises:
        UsageError: matplotlib is not installed, or the file can't be written.
    """
    if find_spec("matplotlib") is None:
        raise UsageError("pictures need the extra 'figures'; install it with: pip install 'filtergym[figures]'")
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        yield figure
        try:
            figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise UsageError(f"can't write {path} ({error}); choose another --out, ending in .svg or .png") from error


def _draw_task(panel: "Axes", cells: Sequence[CellRun]) -> None:
    for number, spec in enumerate(dict.fromkeys(cell.spec for cell in cells)):
        own = [cell for cell in cells if cell.spec == spec]
        colour, curve = COLOURS[number % len(COLOURS)], learning_curve(own)
        for cell in own:
            panel.plot(cell.steps, cell.curve, color=colour, linewidth=0.5, alpha=0.3)
        low, high = (np.array(curve[end], dtype=np.float64) for end in ("low", "high"))
        panel.fill_between(curve["steps"], low, high, color=colour, alpha=0.15, linewidth=0)
        label = "no filter" if spec == "none" else spec
        panel.plot(curve["steps"], curve["mean"], color=colour, label=label, linestyle=LINES[number % len(LINES)])
