"""How is a comparison written down as tables of plain text?"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.comparison import Comparison, JointTest, Row, TaskComparison, Versus
from leaderboard.metrics import Reduction

DASH = "–"

RESULTS = ("Filter", "Seeds", "Final return", "AUC", "SE_peak %", "SE_ave %", "RT_peak %")
STATISTICS = (
    "Filter",
    "Δ AUC",
    "95 % interval",
    "p",
    "Smallest\np",
    "d_z",
    "Detectable\nd_z",
    "Kept\n%",
    "Filter\ntime %",
)
FAILURES = ("Filter", "Seed", "What happened")
JOINT = ("Filter", "Tasks", "Pairs", "Δ AUC", "p", "Smallest p", "p (Holm)")

LEGEND = (
    "± is one standard error over the seeds; – means not computed.",
    "AUC: mean height of the evaluation curve, 0 = random policy, 1 = solved task. "
    "Δ AUC, the primary endpoint: filter minus baseline on the same seed.",
    "SE_peak, SE_ave: environment steps saved until the baseline's peak, and on average over the levels on "
    "its way; RT_peak: training time saved until the peak. Negative: the filter needs more.",
    "≤: in the seeds counted as bound the filter never reached such a level. The whole budget is counted "
    "there, and never as a saving.",
    "p: sign-flip test, two-sided; beside it the smallest p that so few pairs can give. On a single task it "
    "only describes; the joint test decides, with Holm's correction over the filters.",
    "Detectable d_z: the smallest effect (mean difference / its standard deviation) found with 80 % power.",
    "Filter time: the filter's share of the training time (evaluation and logging left out).",
)


@dataclass(frozen=True)
class Sheet:
    """One table; a line break inside a cell or a heading is a wish that Markdown need not grant."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def task_sheets(task: TaskComparison, baseline: str | None) -> list[Sheet]:
    """Results, statistics and, if there are any, the cells without results."""
    results = tuple(_results(row, baseline) for row in task.rows)
    statistics = tuple(_statistics(row, baseline) for row in task.rows)
    sheets = [
        Sheet(task.task, RESULTS, results),
        Sheet(f"{task.task}: against the baseline, and cost", STATISTICS, statistics),
    ]
    if task.failures:
        failed = tuple((failure.spec, str(failure.seed), failure.error) for failure in task.failures)
        sheets.append(Sheet(f"{task.task}: cells without results", FAILURES, failed))
    return sheets


def joint_sheet(comparison: Comparison) -> Sheet | None:
    """The joint test of every filter; None if there is no filter to test."""
    if not comparison.joint:
        return None
    rows = tuple(_joint(test, len(comparison.tasks)) for test in comparison.joint)
    return Sheet("All tasks together: sign-flip test over (task, seed) pairs", JOINT, rows)


def _label(spec: str, baseline: str | None) -> str:
    return f"{spec} (baseline)" if spec == baseline else spec


def _results(row: Row, baseline: str | None) -> tuple[str, ...]:
    own = (_label(row.spec, baseline), str(len(row.seeds)), _mean_and_error(row.final), _mean(row.auc))
    if row.versus is None:
        return (*own, DASH, DASH, DASH)
    reductions = (row.versus.se_peak, row.versus.se_ave, row.versus.rt_peak)
    return (*own, *(_reduction(reduction) for reduction in reductions))


def _statistics(row: Row, baseline: str | None) -> tuple[str, ...]:
    cost = (_mean(100 * row.kept, digits=1), _mean(100 * row.filter_share, digits=1))
    return (_label(row.spec, baseline), *_tests(row.versus), *cost)


def _tests(versus: Versus | None) -> tuple[str, ...]:
    if versus is None:
        return (DASH,) * 6
    mean, low, high = versus.interval
    return (
        f"{mean:+.3f}",
        DASH if math.isnan(low) else f"[{low:+.3f}, {high:+.3f}]",
        _p(versus.test.p),
        _p(versus.test.smallest_p),
        DASH if math.isnan(versus.effect) else f"{versus.effect:.2f}",
        # rounded up: at the printed value the power is there
        DASH if math.isnan(versus.detectable) else f"{math.ceil(100 * versus.detectable) / 100:.2f}",
    )


def _joint(test: JointTest, tasks: int) -> tuple[str, ...]:
    ran = f"{test.tasks} of {tasks}"
    if test.test is None:
        return (test.spec, ran, DASH, DASH, DASH, DASH, DASH)
    mean = f"{test.differences.mean():+.3f}"
    pairs = str(len(test.differences))
    return (test.spec, ran, pairs, mean, _p(test.test.p), _p(test.test.smallest_p), _p(test.p_holm))


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 1e-3 else f"{p:.1e}"


def _mean(values: NDArray[np.float64], *, digits: int = 3) -> str:
    return f"{values.mean():.{digits}f}" if values.size else DASH


def _mean_and_error(values: NDArray[np.float64], *, digits: int | None = None) -> str:
    if not values.size:
        return DASH
    if digits is None:
        digits = 3 if abs(values.mean()) < 10 else 1
    mean = f"{values.mean():.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {values.std(ddof=1) / math.sqrt(len(values)):.{digits}f}"


def _reduction(reduction: Reduction) -> str:
    percent = _mean_and_error(100 * reduction.values, digits=1)
    bounds = int(reduction.censored.sum())
    return f"≤ {percent}\n({bounds} of {len(reduction.censored)} bound)" if bounds else percent
