"""What do the figures of an entry draw: curves with bands, worst and best episodes, profiles, kept fractions?

Everything is plain numbers for JSON, rounded to four significant digits; K checkpoints, R rounds, L thresholds.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leaderboard.board.rows import BoardRow, EntrySummary, task_cells
from leaderboard.board.text import printable
from leaderboard.runs.store import CellRun
from leaderboard.statistics.aggregates import performance_profile

Array = NDArray[np.float64]
Json = dict[str, Any]

EXTREMES = 20
"""episodes at each end of a seed's last evaluation, as Jia et al., arXiv 2609.35072, show them"""
POINTS = 120
"""points of a line at most; more than a figure can show only make the page heavier"""
TAUS = np.round(np.linspace(0.0, 1.0, 41), 4)
"""thresholds of the performance profiles; fixed, so that no entry moves them for another"""
PROFILE_DRAWS = 1_000
"""resamples behind the band of a profile, which is only looked at"""
DIGITS = 4


def figure_data(summary: EntrySummary) -> Json:
    """All series of an entry by filter and task, keyed as the script of the site reads them."""
    return {
        "key": summary.entry.key,
        "name": printable(summary.entry.name),
        "tasks": list(summary.tasks),
        "taus": TAUS.tolist(),
        "rows": [_row(summary, row) for row in summary.rows],
    }


def learning_curve(cells: Sequence[CellRun]) -> Json:
    """Mean return of the seeds at each checkpoint with 95 % t limits: lists [K'] with K' <= POINTS.

    Args:
        cells: the seeds of one filter on one task, with the same checkpoints.
    """
    curves = np.stack([cell.curve for cell in cells])  # [S, K]
    chosen = _thin(curves.shape[1])
    seconds = np.stack([cell.seconds for cell in cells]).mean(axis=0)
    mean, half = curves.mean(axis=0), _half_width(curves)
    return {
        "steps": cells[0].steps[chosen].tolist(),
        "seconds": numbers(seconds[chosen]),
        "mean": numbers(mean[chosen]),
        "low": numbers((mean - half)[chosen]),
        "high": numbers((mean + half)[chosen]),
    }


def extremes(cells: Sequence[CellRun]) -> Json:
    """The worst and the best episodes of each seed's last checkpoint, pooled over the seeds.

    20 at each end of every seed, or half of its episodes if it has fewer than 40.

    Source: Jia et al., arXiv 2609.35072.
    """
    ordered = [np.sort(cell.returns[-1]) for cell in cells]
    ends = [min(EXTREMES, max(1, len(episodes) // 2)) for episodes in ordered]
    pairs = list(zip(ordered, ends, strict=True))
    return {
        "each": min(ends),
        "worst": numbers(np.concatenate([episodes[:end] for episodes, end in pairs])),
        "best": numbers(np.concatenate([episodes[-end:] for episodes, end in pairs])),
    }


def kept_curve(cells: Sequence[CellRun]) -> Json:
    """Kept share per round, mean over the seeds; long runs as means over equal stretches of rounds."""
    rounds = min(len(cell.kept) for cell in cells)
    mean = np.stack([cell.kept[:rounds] for cell in cells]).mean(axis=0)  # [R]
    stretches = np.array_split(np.arange(rounds), min(rounds, POINTS))
    return {
        "round": [int(stretch[-1]) + 1 for stretch in stretches],
        "kept": numbers([mean[stretch].mean() for stretch in stretches]),
    }


def profile(summary: EntrySummary, spec: str) -> Json | None:
    """The performance profile of a filter over all tasks; None if a task or a seed is missing."""
    columns = [row.score for task in summary.comparison.tasks for row in task.rows if row.spec == spec]
    if len(columns) < len(summary.tasks) or len({len(column) for column in columns}) != 1:
        return None
    drawn = performance_profile(np.stack(columns, axis=1), TAUS, draws=PROFILE_DRAWS)
    return {"fraction": numbers(drawn.fraction), "low": numbers(drawn.low), "high": numbers(drawn.high)}


def numbers(values: Sequence[float] | Array) -> list[float | int | None]:
    """Rounded for JSON: whole numbers without a point, and what is not finite as null."""
    return [_round(float(value)) for value in values]


def _half_width(curves: Array) -> Array:
    """[S, K] -> [K]: t(0.975, S − 1) · SE, of each checkpoint by itself; NaN for one seed."""
    count = len(curves)
    if count == 1:
        return np.full(curves.shape[1], np.nan)
    return np.asarray(stats.t.ppf(0.975, count - 1) * curves.std(axis=0, ddof=1) / math.sqrt(count))


def _round(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _row(summary: EntrySummary, row: BoardRow) -> Json:
    groups = {task.task: task_cells(summary.entry.cells, row.spec, task.task) for task in row.tasks}
    return {
        "id": row.row_id,
        "spec": row.spec,
        "baseline": row.is_baseline,
        "profile": profile(summary, row.spec),
        "tasks": {
            task: {"curve": learning_curve(cells), "ends": extremes(cells), "kept": kept_curve(cells)}
            for task, cells in groups.items()
        },
    }


def _thin(points: int) -> NDArray[np.int64]:
    """At most POINTS of the indices 0..points − 1, evenly spread, both ends included."""
    return np.unique(np.linspace(0, points - 1, min(points, POINTS)).round().astype(np.int64))
