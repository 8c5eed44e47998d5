"""How much of a gain comes from starting the environments anew before every round rather than from the filter?

The authors' filtered runs do start them anew, their runs without a filter do not.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.text import number
from leaderboard.claims import measures
from leaderboard.claims.answers import Entries, of_task
from leaderboard.claims.claim import command_of, task_name
from leaderboard.claims.measures import Measure
from leaderboard.claims.verdict import limits
from leaderboard.claims.words import Section, Table, estimate
from leaderboard.entries.submission import Entry
from leaderboard.runs.store import CellRun
from leaderboard.statistics.pairing import cells_of
from leaderboard.statistics.significance import ALPHA, Interval

Array = NDArray[np.float64]
Arms = dict[str, list[CellRun]]

SUITE = "claims-restart"
AGAIN = "@checkpoint-1"
"""how a task's name ends whose environments start anew before every round"""
TITLE = "Filter and restart"
ARMS = {"plain": ("none", ""), "restart": ("none", AGAIN), "filter": ("iif", ""), "both": ("iif", AGAIN)}
"""filter, and how the task's name ends"""
TERMS: dict[str, dict[str, int]] = {
    "filter, without restarts": {"filter": 1, "plain": -1},
    "filter, with restarts": {"both": 1, "restart": -1},
    "restarts, without filter": {"restart": 1, "plain": -1},
    "restarts, with filter": {"both": 1, "filter": -1},
    "both, against neither": {"both": 1, "plain": -1},
    "what restarts add to the filter's gain": {"both": 1, "restart": -1, "filter": -1, "plain": 1},
}
"""sums of the four arms, seed by seed"""
TOTAL, SHARE = "both, against neither", "restarts, without filter"
MEASURES = (measures.AREA, measures.FINAL)
COLUMNS = ("Task", "Difference", "Seeds", "Δ AUC [95 %]", "Δ final return [95 %]")
ABOUT = (
    "In the IIF paper's code the filtered runs start their environments anew before every round, and the runs without "
    "a filter do not: what it compares is both against neither. Here are all four arms, with paired differences over "
    "the seeds. The intervals describe; no verdict hangs on them."
)


def section(entries: Entries) -> Section:
    """The table with a sentence a task, or the sentence that the entry is missing."""
    if SUITE not in entries:
        return Section(TITLE, (ABOUT, f"The runs are not published yet: `{command_of(SUITE)}` makes them."))
    by_task = {task: arms_of(entries[SUITE], task) for task in _tasks(entries[SUITE])}
    complete = {task: arms for task, arms in by_task.items() if _whole(arms)}
    rows = tuple(
        (task, term, str(len(arms["plain"])), *_written(arms, term))
        for task, arms in complete.items()
        for term in TERMS
    )
    notes = [*(_share(task, arms) for task, arms in complete.items())]
    notes += [f"{task}: an arm or a seed is missing, so nothing is compared." for task in by_task.keys() - complete]
    return Section(TITLE, (ABOUT,), (Table(COLUMNS, rows),) if rows else (), tuple(notes))


def arms_of(entry: Entry, task: str) -> Arms:
    """The runs of the four arms by seed."""
    return {arm: cells_of(of_task(entry, task + ending), spec) for arm, (spec, ending) in ARMS.items()}


def difference(arms: Arms, term: str, measure: Measure) -> Interval:
    """A term's mean over the seeds with its 95 % t interval."""
    return limits(measures.exact(_differences(arms, term, measure)), 1 - ALPHA)


def _differences(arms: Arms, term: str, measure: Measure) -> Array:
    """[S]; signs add up to 0, so each arm may be measured against the plain one."""
    return sum(
        (sign * measure.of(arms[arm], arms["plain"]).values for arm, sign in TERMS[term].items()),
        start=np.zeros(len(arms["plain"])),
    )


def _tasks(entry: Entry) -> list[str]:
    return list(dict.fromkeys(task_name(cell.task).removesuffix(AGAIN) for cell in entry.cells))


def _whole(arms: Arms) -> bool:
    seeds = [[cell.seed for cell in cells] for cells in arms.values()]
    return bool(seeds[0]) and all(each == seeds[0] for each in seeds)


def _written(arms: Arms, term: str) -> Sequence[str]:
    return [estimate(difference(arms, term, measure), measure) for measure in MEASURES]


def _share(task: str, arms: Arms) -> str:
    total, alone = (difference(arms, term, measures.AREA) for term in (TOTAL, SHARE))
    if not total.low > 0:
        return f"{task}: no gain of both against neither is shown, so there is nothing to share out."
    share = number(100 * alone.mean / total.mean, digits=0)
    return (
        f"{task}: restarts without any filter make {share} % of the mean Δ AUC of both against neither "
        f"({estimate(alone, measures.AREA)} of {estimate(total, measures.AREA)})."
    )
