"""How does each filter compare with the baseline: on each task, and over all tasks together?"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from leaderboard.runs.store import CellFailure, CellRun
from leaderboard.statistics import metrics
from leaderboard.statistics.aggregates import iqm_interval, probability_of_improvement
from leaderboard.statistics.pairing import cells_of, mismatch, missing_seeds, refuse_twins
from leaderboard.statistics.significance import (
    ALPHA,
    Interval,
    SignFlip,
    detectable_effect,
    effect_size,
    holm,
    paired_interval,
    paired_t,
    sign_flip,
    wilcoxon,
)

Array = NDArray[np.float64]
Item = TypeVar("Item", CellRun, CellFailure, "Row")


@dataclass(frozen=True, eq=False)
class Versus:
    """A filter against the baseline on one task, seed by seed."""

    se_peak: metrics.Reduction
    se_ave: metrics.Reduction
    rt_peak: metrics.Reduction
    differences: Array
    """[S] normalised AUC of the filter minus the baseline's: the primary endpoint"""
    interval: Interval
    test: SignFlip
    paired_t: float
    """p of the paired t test, descriptive; NaN for one seed or without any spread"""
    wilcoxon: float
    """p of Wilcoxon's signed-rank test, descriptive; the smallest possible one is that of `test`"""
    effect: float
    """d_z; NaN for one seed or without any spread"""
    detectable: float
    """smallest d_z found with 80 % power; NaN for one seed"""


@dataclass(frozen=True, eq=False)
class Row:
    """One filter on one task; all arrays are [S], in the order of the seeds."""

    spec: str
    seeds: tuple[int, ...]
    final: Array
    """return at the last checkpoint, in the task's own unit"""
    score: Array
    """the same, normalised: 0 is a random policy, 1 a solved task"""
    auc: Array
    """area under the normalised curve"""
    kept: Array
    """share of the records that the updates could use, mean over rounds"""
    filter_share: Array
    """the filter's share of the training seconds"""
    versus: Versus | None
    """None for the baseline, and where nothing can be compared"""
    corruption: tuple[Mapping[str, Array], ...] = ()
    """S times [R]: how well corrupted records were found, round by round; empty mappings where there were none"""


@dataclass(frozen=True, eq=False)
class TaskComparison:
    """All filters on one task; the baseline first."""

    task: str
    rows: tuple[Row, ...]
    failures: tuple[CellFailure, ...]
    problems: tuple[str, ...]
    """why a comparison is missing, a sentence each"""
    notes: tuple[str, ...] = ()
    """what else has to be known to read the numbers, a sentence each"""


@dataclass(frozen=True, eq=False)
class JointTest:
    """One filter over all (task, seed) pairs."""

    spec: str
    tasks: int
    """tasks the filter was run on"""
    differences: Array
    """[m] normalised AUC differences of all pairs; empty if a comparison on one of its tasks is missing"""
    test: SignFlip | None
    """None if it was not computed"""
    p_holm: float
    """adjusted over the filters; one without a test counts as p = 1, so a broken run helps no other"""
    effect: float
    """d_z over all pairs; NaN without a test, for one pair or without any spread"""
    detectable: float
    """smallest d_z found with 80 % power if Holm asks the most (p <= 5 % / filters); NaN where no p is that small"""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One filter over all tasks, by its normalised scores at the last checkpoint."""

    spec: str
    scores: Array
    """[S, M], tasks in the order of the comparison; empty if a task or a seed is missing"""
    iqm: Interval | None
    """interquartile mean; None if scores are missing"""
    improvement: Interval | None
    """probability that a run ends above one of the baseline; None for the baseline or if a comparison is missing"""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything a report says."""

    baseline: str | None
    tasks: tuple[TaskComparison, ...]
    joint: tuple[JointTest, ...]
    aggregates: tuple[Aggregate, ...]
    """every filter, the baseline first; empty for a single task"""

    @property
    def whole(self) -> bool:
        """Whether no cell failed and no comparison is missing."""
        return not any(task.failures or task.problems for task in self.tasks)


def compare(cells: Sequence[CellRun], failures: Sequence[CellFailure], *, baseline: str | None = "none") -> Comparison:
    """Compare every filter with the baseline on every task, seeds joined by id.

    A comparison is computed only if both sides have exactly the same seeds, checkpoints and settings;
    otherwise a problem says what differs.

    Args:
        cells: complete cells.
        failures: cells without results; their seeds count as missing.
        baseline: the filter that the others are measured against; None compares nothing.

    Raises:
        UsageError: if two cells have the same task, filter and seed.
    """
    refuse_twins(cells)
    complete, failed = _grouped(cells, "task"), _grouped(failures, "task")
    tasks = tuple(
        _compare_task(name, complete.get(name, []), failed.get(name, []), baseline=baseline)
        for name in sorted(complete.keys() | failed.keys())
    )
    return Comparison(baseline, tasks, _joint(tasks, baseline), _aggregates(tasks, baseline))


def _grouped(items: Iterable[Item], name: str) -> dict[str, list[Item]]:
    """The items by one of their attributes, in the order that they came in."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(getattr(item, name), []).append(item)
    return groups


def _compare_task(
    task: str, cells: list[CellRun], failures: list[CellFailure], *, baseline: str | None
) -> TaskComparison:
    cells, note = with_solved(cells)
    complete, failed = _grouped(cells, "spec"), _grouped(failures, "spec")
    specs = sorted(complete.keys() | failed.keys(), key=lambda spec: (spec != baseline, spec))
    problems = []
    if baseline is not None and baseline not in specs:
        problems.append(f"nothing is compared, because the baseline {baseline} was not run; run it too")
    rows = []
    areas: dict[str | None, Array] = {}
    for spec in specs:  # the baseline first
        own, versus = cells_of(complete.get(spec, []), spec), None
        areas[spec] = np.array([_auc(cell) for cell in own])
        if baseline in specs and spec != baseline:
            # the two sides alone: with all cells every filter would look at every other's
            pair = own + complete.get(baseline, [])
            gaps = failed.get(spec, []) + failed.get(baseline, [])
            problem = missing_seeds(pair, gaps, spec, baseline) or mismatch(pair, spec, baseline)
            if problem:
                problems.append(f"{spec} is not compared with {baseline}, because {problem}")
            else:
                versus = _versus(own, cells_of(pair, baseline), areas[spec] - areas[baseline])
        rows.append(_row(spec, own, areas[spec], versus))
    ordered = sorted(failures, key=lambda failure: (specs.index(failure.spec), failure.seed))
    return TaskComparison(task, tuple(rows), tuple(ordered), tuple(problems), (note,) if note else ())


def with_solved(cells: list[CellRun]) -> tuple[list[CellRun], str | None]:
    """The cells of one task, with the best evaluation seen for an unknown `solved` return; and what to say of it.

    That score serves one comparison: another filter in it moves the 1.
    """
    if not any(math.isnan(cell.references["solved"]) for cell in cells):
        return cells, None
    random = cells[0].references["random"]
    best = max(float(cell.curve.max()) for cell in cells)
    best = best if best > random else random + 1.0
    named = [replace(cell, references=cell.references | {"solved": best}) for cell in cells]
    return named, f"scores: 1 is the best evaluation seen here ({best:.4g}), as no return of a good policy is known"


def _row(spec: str, cells: list[CellRun], areas: Array, versus: Versus | None) -> Row:
    shares = [cell.phase_seconds.get("filter", 0.0) / max(cell.training_seconds, 1e-12) for cell in cells]
    return Row(
        spec=spec,
        seeds=tuple(cell.seed for cell in cells),
        final=np.array([cell.curve[-1] for cell in cells]),
        score=np.array([_scores(cell)[-1] for cell in cells]),
        auc=areas,
        kept=np.array([cell.kept.mean() for cell in cells]),
        filter_share=np.array(shares),
        versus=versus,
        corruption=tuple(cell.corruption for cell in cells),
    )


def _scores(cell: CellRun) -> Array:
    return metrics.normalise(cell.curve, random=cell.references["random"], solved=cell.references["solved"])


def _auc(cell: CellRun) -> float:
    return float(metrics.auc(_scores(cell)[None], cell.steps.astype(np.float64))[0])


def _versus(ours: list[CellRun], theirs: list[CellRun], differences: Array) -> Versus:
    """Both sides sorted by seed, with the same seeds and checkpoints; and their differences in AUC, [S]."""
    f, b = (np.stack([cell.curve for cell in side]) for side in (ours, theirs))
    f_seconds, b_seconds = (np.stack([cell.seconds for cell in side]) for side in (ours, theirs))
    steps = theirs[0].steps.astype(np.float64)
    return Versus(
        se_peak=metrics.se_peak(f, b, steps=steps),
        se_ave=metrics.se_ave(f, b, steps=steps),
        rt_peak=metrics.rt_peak(f, b, filter_seconds=f_seconds, baseline_seconds=b_seconds),
        differences=differences,
        interval=paired_interval(differences),
        test=sign_flip(differences),
        paired_t=paired_t(differences),
        wilcoxon=wilcoxon(differences),
        effect=effect_size(differences),
        detectable=detectable_effect(len(differences)),
    )


def _joint(tasks: tuple[TaskComparison, ...], baseline: str | None) -> tuple[JointTest, ...]:
    if baseline is None:
        return ()
    rows = _grouped((row for task in tasks for row in task.rows if row.spec != baseline), "spec")
    specs = sorted(rows)
    pooled = [_pool(rows[spec]) for spec in specs]
    tests = [sign_flip(differences) if differences.size else None for differences in pooled]
    adjusted = holm(np.array([test.p if test else 1.0 for test in tests]))
    return tuple(
        JointTest(
            spec,
            len(rows[spec]),
            differences,
            test,
            float(p),
            effect_size(differences) if test else float("nan"),
            _detectable(test, len(differences), len(specs)),
        )
        for spec, differences, test, p in zip(specs, pooled, tests, adjusted, strict=True)
    )


def _detectable(test: SignFlip | None, pairs: int, filters: int) -> float:
    if test is None or filters * test.smallest_p > ALPHA:
        return float("nan")
    return detectable_effect(pairs, level=ALPHA / filters)


def _pool(rows: list[Row]) -> Array:
    parts = [row.versus.differences for row in rows if row.versus is not None]
    return np.concatenate(parts) if len(parts) == len(rows) else np.empty(0)


def _aggregates(tasks: tuple[TaskComparison, ...], baseline: str | None) -> tuple[Aggregate, ...]:
    if len(tasks) < 2:
        return ()
    rows = _grouped((row for task in tasks for row in task.rows), "spec")
    specs = sorted(rows, key=lambda spec: (spec != baseline, spec))
    tables = {spec: _by_task(rows[spec], len(tasks)) for spec in specs}
    return tuple(
        Aggregate(
            spec,
            tables[spec],
            iqm_interval(tables[spec]) if tables[spec].size else None,
            # a row with a comparison has the baseline's seeds
            probability_of_improvement(tables[spec], tables[str(baseline)])
            if tables[spec].size and all(row.versus for row in rows[spec])
            else None,
        )
        for spec in specs
    )


def _by_task(rows: list[Row], tasks: int) -> Array:
    """Final scores [S, M]; empty if a task is missing or the seeds are not the same on all of them."""
    if len(rows) < tasks or not rows[0].seeds or len({row.seeds for row in rows}) > 1:
        return np.empty((0, tasks))
    return np.stack([row.score for row in rows], axis=1)
