"""Which number does a claim speak of, seed by seed: saved steps, differences in area or return, shares of the time?

A measure takes the runs of a filter and of what it is held against, both sorted by seed, with the same seeds and
checkpoints, and gives one number a seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.claims.verdict import Sample
from leaderboard.runs.store import CellRun
from leaderboard.statistics import metrics

Array = NDArray[np.float64]
Cells = Sequence[CellRun]


@dataclass(frozen=True)
class Measure:
    """A number of two groups of runs."""

    name: str
    of: Callable[[Cells, Cells], Sample]
    percent: bool = False
    """whether it is a share, written as a percentage"""
    signed: bool = True
    """whether it may lie on both sides of 0"""


def curves(cells: Cells) -> Array:
    """[S, K] mean evaluation returns."""
    return np.stack([cell.curve for cell in cells])


def areas(cells: Cells) -> Array:
    """[S] normalised areas under the evaluation curve: 0 is a random policy, 1 a solved task."""
    return metrics.auc(_scores(cells), cells[0].steps.astype(np.float64))


def se_ave(ours: Cells, theirs: Cells) -> Sample:
    """Share of the environment steps saved, mean over the levels on the other's way."""
    saved = metrics.se_ave(curves(ours), curves(theirs), steps=theirs[0].steps.astype(np.float64))
    return Sample(saved.values, saved.censored)


def se_peak(ours: Cells, theirs: Cells) -> Sample:
    """Share of the environment steps saved until the other's best."""
    saved = metrics.se_peak(curves(ours), curves(theirs), steps=theirs[0].steps.astype(np.float64))
    return Sample(saved.values, saved.censored)


def rt_peak(ours: Cells, theirs: Cells) -> Sample:
    """Share of the training time saved until the other's best.

    `metrics.rt_peak` counts a run that spends its steps sooner than the other needs for its best, and never reaches
    that, as no saving. Nothing but the time it spent is known, so here the bound is that time, and may be above 0.
    """
    f, b = curves(ours), curves(theirs)
    f_seconds, b_seconds = _seconds(ours), _seconds(theirs)
    saved = metrics.rt_peak(f, b, filter_seconds=f_seconds, baseline_seconds=b_seconds)
    reached = [metrics.first_reach(curve, axis, curve.max()) for curve, axis in zip(b, b_seconds, strict=True)]
    return Sample(np.where(saved.censored, 1 - f_seconds[:, -1] / np.array(reached), saved.values), saved.censored)


def area_difference(ours: Cells, theirs: Cells) -> Sample:
    """Difference of the normalised areas under the evaluation curve."""
    return exact(areas(ours) - areas(theirs))


def final_difference(ours: Cells, theirs: Cells) -> Sample:
    """Difference of the returns at the last checkpoint, in the task's own unit."""
    return exact(metrics.final_return(curves(ours)) - metrics.final_return(curves(theirs)))


def score_difference(ours: Cells, theirs: Cells) -> Sample:
    """The same, normalised."""
    return exact(metrics.final_return(_scores(ours)) - metrics.final_return(_scores(theirs)))


def setback_difference(ours: Cells, theirs: Cells) -> Sample:
    """Difference of how far the normalised curves lie below their own best so far, mean over the checkpoints."""
    return exact(_setbacks(ours) - _setbacks(theirs))


def kept_difference(ours: Cells, theirs: Cells) -> Sample:
    """Difference of the shares of the records that the updates could use, means over the rounds."""
    return exact(_kept(ours) - _kept(theirs))


def time_saved(ours: Cells, theirs: Cells) -> Sample:
    """Share of the training time saved for the same number of environment steps."""
    return exact(1 - _seconds(ours)[:, -1] / _seconds(theirs)[:, -1])


def filter_cost(ours: Cells, _: Cells) -> Sample:
    """Seconds of the filter per second of optimisation."""
    return exact(np.array([cell.phase_seconds["filter"] / cell.phase_seconds["update"] for cell in ours]))


def exact(values: Array) -> Sample:
    """Numbers of which none is a bound."""
    return Sample(values, np.zeros(len(values), dtype=np.bool_))


SE_AVE = Measure("SE_ave", se_ave, percent=True)
SE_PEAK = Measure("SE_peak", se_peak, percent=True)
RT_PEAK = Measure("RT_peak", rt_peak, percent=True)
AREA = Measure("Δ AUC", area_difference)
FINAL = Measure("Δ final return", final_difference)
SCORE = Measure("Δ final score", score_difference)
SETBACK = Measure("Δ setback", setback_difference)
KEPT = Measure("Δ kept", kept_difference, percent=True)
TIME = Measure("time saved", time_saved, percent=True)
COST = Measure("filter / update time", filter_cost, percent=True, signed=False)

EXPLAINED: dict[Measure, str] = {
    SE_AVE: "environment steps saved, mean over all levels on the way of the run without a filter",
    SE_PEAK: "environment steps saved until the best evaluation of the run without a filter",
    RT_PEAK: "training time saved until that best evaluation",
    AREA: "difference in the normalised area under the evaluation curve (0 = random policy, 1 = solved task)",
    FINAL: "difference in the return at the last evaluation, in the task's own unit",
    SCORE: "the same, normalised",
    SETBACK: "difference in how far the curve lies below its own best so far, mean over the evaluations, normalised",
    KEPT: "difference in the share of the records that the updates could use, in percentage points",
    TIME: "training time saved for the same number of environment steps",
    COST: "the filter's seconds as a share of the seconds of optimisation",
}
"""what each measure is, in words"""


def _scores(cells: Cells) -> Array:
    references = cells[0].references
    return metrics.normalise(curves(cells), random=references["random"], solved=references["solved"])


def _seconds(cells: Cells) -> Array:
    return np.stack([cell.seconds for cell in cells])


def _setbacks(cells: Cells) -> Array:
    scores = _scores(cells)
    return np.asarray((np.maximum.accumulate(scores, axis=1) - scores).mean(axis=1))


def _kept(cells: Cells) -> Array:
    return np.array([cell.kept.mean() for cell in cells])
