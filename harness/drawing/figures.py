"""What do all figures have in common? Readable labels, colours that everyone can tell apart, and the same in words."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from filters.errors import UsageError
from leaderboard.runs.jsonfile import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#666666",
)
"""from the palette of Okabe and Ito, and a grey"""
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
MARKERS = ("o", "s", "^", "D", "v", "P")

STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.labelpad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
}


def require_figures() -> None:
    """Raise UsageError unless figures can be drawn."""
    if find_spec("matplotlib") is None:
        raise UsageError("figures need the extra 'figures'; install it with: pip install 'filtergym[figures]'")


def new_figure(rows: int, columns: int, *, size: tuple[float, float]) -> "tuple[Figure, list[Axes]]":
    """A figure of rows × columns panels, row by row, of `size` inches; no window and no global state."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=130)
        FigureCanvasAgg(figure)
        panels = figure.subplots(rows, columns, squeeze=False)
    return figure, list(panels.ravel())


def save(figure: "Figure", path: Path, words: Sequence[str]) -> None:
    """Write the figure to `path` (a .png) and beside it, in a .txt of the same name, what it shows in words."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(words) + "\n"
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Description": text})
    path.with_suffix(".txt").write_text(text, encoding="utf-8")


def two_sided_log(panel: "Axes", axis: Literal["x", "y"], values: NDArray[Any], *, decades: int) -> None:
    """Make an axis logarithmic on both sides of zero, over that many decades below the largest of the values."""
    top = int(np.ceil(np.log10(max(float(np.abs(values).max(initial=0)), 1e-12))))
    powers = range(top - decades, top + 1)
    getattr(panel, f"set_{axis}scale")("symlog", linthresh=10.0 ** powers[0], linscale=0.7)
    getattr(panel, f"set_{axis}ticks")([sign * 10.0**power for sign in (-1, 1) for power in powers] + [0.0])


def number(value: float | None, digits: int = 3) -> str:
    """A number for a label or a sentence; – for none."""
    if value is None:
        return "–"
    return "0" if abs(value) < 1e-12 else f"{value:.{digits}g}".replace("-", "−")


def interval(found: Json) -> str:
    """A mean with its interval, where there is one, for a label or a sentence."""
    if found["ci"] is None:
        return number(found["mean"])
    return f"{number(found['mean'])} [{number(found['ci'][0])}, {number(found['ci'][1])}]"
