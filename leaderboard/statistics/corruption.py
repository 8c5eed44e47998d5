"""Did the filters find the records that were made harmful, and what is left of the return?"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.statistics.comparison import Comparison, Row, TaskComparison
from leaderboard.statistics.significance import Interval, paired_interval

Array = NDArray[np.float64]

CORRUPTED = re.compile(r"@corrupt-([a-z-]+)-([0-9.e+-]+)$")
"""how a task's id ends that has records made harmful: kind and fraction"""


@dataclass(frozen=True, eq=False)
class Detection:
    """One filter on one corrupted task; arrays are [S], means over the rounds, NaN where nothing can be said."""

    task: str
    spec: str
    corrupted: Array
    """share of the records"""
    auroc: Array
    """how well the scores tell corrupted from clean records: 0.5 by chance"""
    average_precision: Array
    """the same as average precision: the share of corrupted records by chance"""
    recall: Array
    """share of the corrupted records that was dropped"""
    precision: Array
    """share of what was dropped that was corrupted"""
    lost: Interval | None
    """normalised final return on the corrupted task minus that on the clean one, paired by seed; None if either lacks
    a seed"""


def detections(comparison: Comparison) -> tuple[Detection, ...]:
    """Every filter on every corrupted task, in the order of the comparison."""
    tasks = {task.task: task for task in comparison.tasks}
    return tuple(
        _detection(task.task, row, tasks.get(CORRUPTED.sub("", task.task)))
        for task in comparison.tasks
        if CORRUPTED.search(task.task)
        for row in task.rows
        if row.seeds
    )


def _detection(task: str, row: Row, clean: TaskComparison | None) -> Detection:
    means = {name: np.array([_mean(seed[name]) for seed in row.corruption]) for name in row.corruption[0]}
    return Detection(task=task, spec=row.spec, lost=_lost(row, clean), **means)


def _mean(values: Array) -> float:
    said = values[~np.isnan(values)]
    return float(said.mean()) if said.size else float("nan")


def _lost(row: Row, clean: TaskComparison | None) -> Interval | None:
    same = [other for other in clean.rows if other.spec == row.spec] if clean else []
    if not same or same[0].seeds != row.seeds:
        return None
    return paired_interval(row.score - same[0].score)
