"""Which difference between the IIF setting and the DTV setting of MiniGrid turns a gain of IIF into a loss?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leaderboard.board.picture import COLOURS, canvas
from leaderboard.board.text import number
from leaderboard.claims import measures
from leaderboard.claims.answers import Entries, of_task
from leaderboard.claims.claim import command_of, task_name
from leaderboard.claims.verdict import limits
from leaderboard.claims.words import Section, Table, estimate
from leaderboard.runs.store import CellRun
from leaderboard.statistics.pairing import cells_of
from leaderboard.statistics.significance import ALPHA, Interval

SUITE = "claims-walk"
ENDS = "claims-settings"
FIRST, LAST = "MiniGrid-Empty-8x8", "MiniGrid-Empty-8x8-dtv"
"""where the walk starts and where it leads to"""
TITLE = "The walk between the two settings of MiniGrid"
COLUMNS = (
    "Setting",
    "Rounds",
    "Input / by",
    "Layers before the heads",
    "Environments × steps",
    "Gradient norm",
    "Seeds",
)
RESULTS = ("none, AUC", "iif, AUC", "Δ AUC [95 %]")
PICTURE = (
    "Each setting's mean Δ AUC with its 95 % interval, from the IIF setting above to the DTV setting below; every seed "
    "is a dot."
)
ABOUT = (
    "MiniGrid-Empty-8x8 in the IIF setting, in the DTV setting, and with some of what differs between them put in, "
    "alone and together: whether a gain of IIF in one paper's setting becomes a loss in the other's, and what does it. "
    "The intervals describe; no verdict hangs on them."
)


@dataclass(frozen=True, eq=False)
class Stop:
    """One setting on the way."""

    name: str
    changed: tuple[str, ...]
    """its circumstances, as the table shows them"""
    areas: tuple[float, float]
    """mean normalised area without and with the filter"""
    differences: measures.Array
    """[S] with minus without"""
    interval: Interval


def section(entries: Entries) -> Section:
    """The table; a sentence where an entry is missing."""
    found = stops(entries)
    missing = [suite for suite in (SUITE, ENDS) if suite not in entries]
    notes = tuple(_missing(suite) for suite in missing)
    if not found:
        return Section(TITLE, (ABOUT, *notes))
    rows = tuple((stop.name, *stop.changed, *_results(stop)) for stop in found)
    return Section(TITLE, (ABOUT,), (Table((*COLUMNS, *RESULTS), rows),), notes, picture=PICTURE)


def stops(entries: Entries) -> list[Stop]:
    """All settings that there are runs of, from the IIF setting to the DTV setting."""
    between = list(dict.fromkeys(cell.task for cell in entries[SUITE].cells)) if SUITE in entries else []
    names = sorted({task_name(task) for task in between}, key=lambda name: (name.count("-"), _place(between, name)))
    wanted = [(ENDS, FIRST), *((SUITE, name) for name in names), (ENDS, LAST)]
    sides = [(name, of_task(entries[suite], name)) for suite, name in wanted if suite in entries]
    return [_stop(name, cells_of(cells, "iif"), cells_of(cells, "none")) for name, cells in sides if _whole(cells)]


def draw(stops: Sequence[Stop], path: Path) -> None:
    """Draw Δ AUC of every setting: the mean with its 95 % limits, and every seed.

    Args:
        stops: from the IIF setting to the DTV setting.
        path: a .svg or .png, written anew.

    Raises:
        UsageError: matplotlib is not installed, or the file can't be written.
    """
    with canvas(path, size=(7.0, 0.8 + 0.36 * len(stops))) as figure:
        panel = figure.subplots()
        for place, stop in enumerate(stops):
            mean, low, high = stop.interval
            panel.plot(
                stop.differences, [place] * len(stop.differences), "o", color=COLOURS[0], markersize=3, alpha=0.5
            )
            panel.plot([low, high], [place, place], color=COLOURS[1], linewidth=2)
            panel.plot([mean], [place], "o", color=COLOURS[1], markersize=7)
        panel.axvline(0.0, color=COLOURS[0], linewidth=0.8)
        panel.set_yticks(range(len(stops)), [stop.name for stop in stops])
        panel.invert_yaxis()
        panel.set_xlabel("Δ AUC, iif minus no filter: mean, 95 % interval, and every seed")


def _place(tasks: Sequence[str], name: str) -> int:
    return [task_name(task) for task in tasks].index(name)


def _whole(cells: Sequence[CellRun]) -> bool:
    ours, theirs = ([cell.seed for cell in cells_of(cells, spec)] for spec in ("iif", "none"))
    return bool(ours) and ours == theirs


def _stop(name: str, ours: list[CellRun], theirs: list[CellRun]) -> Stop:
    sample = measures.area_difference(ours, theirs)
    return Stop(
        name=_called(name),
        changed=(*_circumstances(theirs[0]), str(len(theirs))),
        areas=(float(measures.areas(theirs).mean()), float(measures.areas(ours).mean())),
        differences=sample.values,
        interval=limits(sample, 1 - ALPHA),
    )


def _called(name: str) -> str:
    if name in (FIRST, LAST):
        return "IIF setting" if name == FIRST else "DTV setting"
    steps = name.split("-")[2:]
    return f"IIF + {', '.join(steps)}" if steps else "IIF, longer"


def _circumstances(cell: CellRun) -> tuple[str, ...]:
    args = cell.config["args"]
    records = args["num_envs"] * args["num_steps"]
    clip = args["max_grad_norm"]
    return (
        str(-(-args["total_steps"] // records)),
        f"{args['obs_scale']:g}",
        " ".join(map(str, args["hidden"])) or "none",
        f"{args['num_envs']} × {args['num_steps']:,}",
        f"≤ {clip:g}" if clip else "free",
    )


def _results(stop: Stop) -> tuple[str, ...]:
    return (*(number(area) for area in stop.areas), estimate(stop.interval, measures.AREA))


def _missing(suite: str) -> str:
    what = "The two ends" if suite == ENDS else "The settings in between"
    return f"{what} are not published yet: `{command_of(suite)}` makes their runs."
