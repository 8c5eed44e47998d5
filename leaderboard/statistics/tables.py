"""How is a comparison written down as tables of plain text?"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.statistics.comparison import Aggregate, Comparison, JointTest, Row, TaskComparison, Versus
from leaderboard.statistics.corruption import Detection, detections
from leaderboard.statistics.metrics import Reduction
from leaderboard.statistics.significance import Interval

DASH = "–"

RESULTS = ("Filter", "Seeds", "Final return", "AUC", "SE_peak %", "SE_ave %", "RT_peak %")
STATISTICS = (
    "Filter",
    "Δ AUC",
    "95 % interval",
    "d_z",
    "p\nsign-flip",
    "p\npaired t",
    "p\nWilcoxon",
    "Kept\n%",
    "Filter\ntime %",
)
FAILURES = ("Filter", "Seed", "What happened")
JOINT = (
    "Filter",
    "Tasks",
    "Pairs",
    "Δ AUC",
    "d_z",
    "Detectable\nd_z",
    "p",
    "Smallest\np",
    "p\n(Holm)",
)
AGGREGATES = ("Filter", "Seeds", "IQM", "95 % interval", "P(better)", "95 % interval")
DETECTION = (
    "Filter",
    "AUROC",
    "Average\nprecision",
    "Corrupted\n%",
    "Recall\n%",
    "Precision\n%",
    "Δ final",
    "95 % interval",
)

LEGEND = (
    "± is one standard error over the seeds; – means not computed.",
    "AUC: mean height of the evaluation curve, 0 = random policy, 1 = solved task. "
    "Δ AUC, the primary endpoint: filter minus baseline on the same seed.",
    "SE_peak, SE_ave: environment steps saved until the baseline's peak, and on average over the levels on "
    "its way; RT_peak: training time saved until the peak. Negative: the filter needs more.",
    "≤: in the seeds counted as bound the filter never reached such a level. The whole budget is counted "
    "there, and never as a saving.",
    "p: two-sided; p ≥ is the smallest p that so few pairs can give in a sign-flip or Wilcoxon test. On a single task, "
    "tests and intervals only describe; the joint sign-flip test decides, with Holm's correction over the filters.",
    "d_z: mean difference / its standard deviation. Detectable: the smallest that a paired t test finds with 80 % "
    "power, at 5 % on a task and at 5 % / filters in the joint test.",
    "Filter time: the filter's share of the training time (evaluation and logging left out).",
)
DETECTION_LEGEND = (
    "AUROC, average precision: how well the scores tell corrupted from clean records, mean over rounds; by chance 0.5 "
    "and the corrupted share. Recall, precision: of the records dropped.",
    "Δ final: normalised final return minus that on the clean task, same filter and seed.",
)
AGGREGATE_LEGEND = (
    "IQM: mean of the middle half of all runs by their normalised final return (0 = random policy, 1 = solved task).",
    "P(better): how probably a run of the filter ends above one of the baseline on the same task; 50 % is no "
    "difference. Both intervals: bootstrap of the seeds within tasks; they only describe.",
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
    title = f"{task.task}: against the baseline, and cost{_limits_of_the_pairs(task)}"
    sheets = [Sheet(task.task, RESULTS, results), Sheet(title, STATISTICS, statistics)]
    if task.failures:
        failed = tuple((failure.spec, str(failure.seed), failure.error) for failure in task.failures)
        sheets.append(Sheet(f"{task.task}: cells without results", FAILURES, failed))
    return sheets


def suite_sheets(comparison: Comparison) -> list[Sheet]:
    """Over all tasks together: the joint tests if a filter was tested, the aggregates if there are two tasks."""
    sheets = []
    if comparison.joint:
        rows = tuple(_joint(test, len(comparison.tasks)) for test in comparison.joint)
        sheets.append(Sheet("All tasks together: sign-flip test of AUC over (task, seed) pairs", JOINT, rows))
    if comparison.aggregates:
        rows = tuple(_aggregate(aggregate, comparison.baseline) for aggregate in comparison.aggregates)
        sheets.append(Sheet("Across tasks: normalised final returns", AGGREGATES, rows))
    return sheets


def detection_sheets(comparison: Comparison) -> list[Sheet]:
    """For every task with records made harmful: who found them."""
    found = detections(comparison)
    return [
        Sheet(
            f"{task}: who finds the records made harmful, and what they cost",
            DETECTION,
            tuple(_detection(one, comparison.baseline) for one in found if one.task == task),
        )
        for task in dict.fromkeys(detection.task for detection in found)
    ]


def legend(comparison: Comparison) -> tuple[str, ...]:
    """What the words in the tables mean, a sentence or two each."""
    return (
        *LEGEND,
        *(AGGREGATE_LEGEND if comparison.aggregates else ()),
        *(DETECTION_LEGEND if detections(comparison) else ()),
    )


def _label(spec: str, baseline: str | None) -> str:
    return f"{spec} (baseline)" if spec == baseline else spec


def _limits_of_the_pairs(task: TaskComparison) -> str:
    """The smallest p and the smallest detectable effect; every comparison on a task has the baseline's seeds."""
    for row in task.rows:
        if row.versus is not None:
            limits = f" ({_count(row.seeds)}: p ≥ {format_p(row.versus.test.smallest_p)}"
            detectable = row.versus.detectable
            return limits + ("" if math.isnan(detectable) else f", detectable d_z {_detectable(detectable)}") + ")"
    return ""


def _count(seeds: tuple[int, ...]) -> str:
    return f"{len(seeds)} pair{'s' if len(seeds) > 1 else ''}"


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
    return (
        f"{versus.interval.mean:+.3f}",
        _limits(versus.interval, "+.3f"),
        _effect(versus.effect),
        *map(format_p, (versus.test.p, versus.paired_t, versus.wilcoxon)),
    )


def _joint(test: JointTest, tasks: int) -> tuple[str, ...]:
    ran = f"{test.tasks} of {tasks}"
    if test.test is None:
        return (test.spec, ran, *(DASH,) * 7)
    return (
        test.spec,
        ran,
        str(len(test.differences)),
        f"{test.differences.mean():+.3f}",
        _effect(test.effect),
        _detectable(test.detectable),
        format_p(test.test.p),
        format_p(test.test.smallest_p),
        format_p(test.p_holm),
    )


def _aggregate(aggregate: Aggregate, baseline: str | None) -> tuple[str, ...]:
    return (
        _label(aggregate.spec, baseline),
        str(len(aggregate.scores)) if aggregate.iqm else DASH,
        *_estimate(aggregate.iqm, ".3f"),
        *_estimate(aggregate.improvement, ".1%"),
    )


def _detection(detection: Detection, baseline: str | None) -> tuple[str, ...]:
    numbers = (detection.auroc, detection.average_precision)
    shares = (detection.recall, detection.precision)
    return (
        _label(detection.spec, baseline),
        *("–" if np.isnan(values).any() else _mean_and_error(values, digits=3) for values in numbers),
        _mean(100 * detection.corrupted, digits=1),
        *("–" if np.isnan(values).any() else _mean(100 * values, digits=1) for values in shares),
        *_estimate(detection.lost, "+.3f"),
    )


def _estimate(interval: Interval | None, form: str) -> tuple[str, str]:
    return (f"{interval.mean:{form}}", _limits(interval, form)) if interval else (DASH, DASH)


def _limits(interval: Interval, form: str) -> str:
    return DASH if math.isnan(interval.low) else f"[{interval.low:{form}}, {interval.high:{form}}]"


def _effect(effect: float) -> str:
    return DASH if math.isnan(effect) else f"{effect:.2f}"


def _detectable(effect: float) -> str:
    # rounded up: at the printed value the power is there
    return DASH if math.isnan(effect) else f"{math.ceil(100 * effect) / 100:.2f}"


def format_p(p: float) -> str:
    """A p value in as many digits as matter; a dash for NaN."""
    if math.isnan(p):
        return DASH
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
