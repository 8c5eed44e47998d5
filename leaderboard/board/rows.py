"""Which filter helps where, how sure is that, and what does it cost: the rows of the board, one per (entry, filter).

Every number comes from the raw returns of one entry alone, so an entry more or less changes no other row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from filters.errors import UsageError
from leaderboard.entries.submission import Entry
from leaderboard.runs.store import CellRun
from leaderboard.statistics.comparison import Comparison, JointTest, Row, compare
from leaderboard.statistics.corruption import CORRUPTED
from leaderboard.statistics.metrics import Reduction
from leaderboard.statistics.pairing import cells_of
from leaderboard.statistics.significance import ALPHA, Interval, paired_interval

BASELINE = "none"

Verdict = Literal["helps", "harms", "not shown", "too few runs", "not computed"]

VERDICTS: dict[Verdict, str] = {
    "helps": "the joint test is significant at 5 % after Holm's correction, and the mean difference is above 0",
    "harms": "the joint test is significant at 5 % after Holm's correction, and the mean difference is below 0",
    "not shown": "the joint test is not significant: neither a benefit nor a harm is shown",
    "too few runs": "even the clearest result could not be significant with so few pairs and so many filters",
    "not computed": "a comparison with the baseline is missing",
}


@dataclass(frozen=True)
class Saving:
    """The share of the baseline's cost that a filter saves, mean over (task, seed) pairs."""

    share: float
    """1 = all, negative = it costs more; an upper bound if `bound` is above 0"""
    bound: int
    """pairs in which the filter never reached the level"""
    pairs: int


@dataclass(frozen=True)
class TaskResult:
    """One filter on one task."""

    task: str
    final: float
    """mean return at the last checkpoint, in the task's own unit"""
    final_error: float
    """its standard error over the seeds; NaN for one seed"""
    auc: float
    """normalised, mean over the seeds"""
    delta: Interval | None
    """normalised AUC minus the baseline's, with 95 % limits; None for the baseline or if nothing is compared"""
    p: float | None
    smallest_p: float | None
    """the smallest p that a sign-flip test of so few pairs can give"""
    paired_t: float | None
    """p of the paired t test; NaN where it is undefined"""
    wilcoxon: float | None
    """p of Wilcoxon's signed-rank test"""
    effect: float | None
    """d_z; NaN where it is undefined"""
    detectable: float | None
    """the smallest d_z found with 80 % power"""
    se_peak: Saving | None
    se_ave: Saving | None
    rt_peak: Saving | None
    kept: float
    """share of the records that the updates could use"""
    filter_share: float
    """share of the training time that the filter takes"""


@dataclass(frozen=True)
class BoardRow:
    """One filter of one entry over all tasks of its suite."""

    key: str
    spec: str
    is_baseline: bool
    tasks: tuple[TaskResult, ...]
    """in the order of the suite's tasks on the board"""
    delta: Interval | None
    """mean normalised AUC difference over all (task, seed) pairs with its 95 % t interval: the ranking"""
    pairs: int
    p: float | None
    """joint sign-flip test"""
    p_holm: float | None
    """adjusted over the filters of the entry"""
    smallest_p_holm: float | None
    """the smallest adjusted p that so few pairs and so many filters can give"""
    verdict: Verdict
    effect: float | None
    """d_z over all pairs"""
    detectable: float | None
    """the smallest d_z found with 80 % power if Holm asks the most; NaN where no p is that small"""
    score: Interval | None
    """interquartile mean of the normalised final scores, with 95 % bootstrap limits; None for a single task"""
    improvement: Interval | None
    """probability that a run of the filter ends above one of the baseline, likewise"""
    se_peak: Saving | None
    se_ave: Saving | None
    rt_peak: Saving | None
    time_ratio: float | None
    """training time for the same number of steps, geometric mean of filter / baseline over the pairs"""
    kept: float
    filter_share: float

    @property
    def row_id(self) -> str:
        """Identifies the row on the board; a key holds no colon."""
        return f"{self.key}:{self.spec}"

    def on(self, task: str) -> TaskResult | None:
        """The result on one task; None if the filter was not run on it."""
        return next((result for result in self.tasks if result.task == task), None)

    def delta_on(self, task: str) -> Interval | None:
        """The AUC difference on one task; None if nothing is compared there."""
        result = self.on(task)
        return result.delta if result else None


@dataclass(frozen=True, eq=False)
class EntrySummary:
    """An entry and what the board says of it."""

    entry: Entry
    comparison: Comparison
    rows: tuple[BoardRow, ...]
    """the baseline first, then the filters as ranked"""

    @property
    def tasks(self) -> tuple[str, ...]:
        """Ids of the entry's tasks, sorted."""
        return tuple(task.task for task in self.comparison.tasks)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why comparisons are missing, a sentence each."""
        found = [f"{task.task}: {problem}" for task in self.comparison.tasks for problem in task.problems]
        found += [
            f"{task}: {row.spec} was not run on it, so it is not ranked"
            for row in self.rows
            for task in self.tasks
            if row.on(task) is None
        ]
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Ranking:
    """All rows of one suite on the same versions of the same tasks; only these can be ranked together."""

    suite: str
    tasks: tuple[str, ...]
    entries: tuple[EntrySummary, ...]
    rows: tuple[BoardRow, ...]
    """best first; baselines are not ranked"""
    superseded: bool = False
    """whether the board has the suite with newer versions of these tasks, too"""

    @property
    def is_corrupted(self) -> bool:
        """Whether records were made harmful in any of the tasks."""
        return any(CORRUPTED.search(task) for task in self.tasks)

    @property
    def title(self) -> str:
        """The suite, and whether its tasks have changed since."""
        return f"{self.suite}, with earlier tasks" if self.superseded else self.suite


def overview(rankings: Sequence[Ranking]) -> list[tuple[str, list[str]]]:
    """For every filter on the board, by name, its verdict in each ranking: `verdict`, several where entries differ.

    Returns:
        [(filter, [verdict in each ranking; empty where it was not run])].
    """
    specs = sorted({row.spec for ranking in rankings for row in ranking.rows})
    table = []
    for spec in specs:
        found = [dict.fromkeys(row.verdict for row in ranking.rows if row.spec == spec) for ranking in rankings]
        table.append((spec, [", ".join(verdicts) for verdicts in found]))
    return table


def summarise(entry: Entry) -> EntrySummary:
    """All numbers of an entry, from its raw returns.

    Raises:
        UsageError: if a cell is there twice, or its numbers can't be compared (clocks that run backwards).
    """
    try:
        comparison = compare(entry.cells, (), baseline=BASELINE)
    except ValueError as error:
        raise UsageError(
            f"the entry {entry.key} can't be compared ({error}); `python -m leaderboard.validate` says what is wrong"
        ) from error
    # a filter that lacks a task is not ranked next to those that ran them all
    joint = {test.spec: test for test in comparison.joint if test.tasks == len(comparison.tasks)}
    specs = sorted({row.spec for task in comparison.tasks for row in task.rows})
    rows = [_board_row(entry, comparison, spec, joint.get(spec)) for spec in specs]
    baseline = [row for row in rows if row.is_baseline]
    return EntrySummary(entry, comparison, (*baseline, *rank(row for row in rows if not row.is_baseline)))


def rankings(entries: Iterable[EntrySummary]) -> tuple[Ranking, ...]:
    """A ranking for every suite, after it those of earlier versions of its tasks; corrupted records come last."""
    groups: dict[tuple[str, tuple[str, ...]], list[EntrySummary]] = {}
    for entry in entries:
        groups.setdefault((entry.entry.suite, entry.tasks), []).append(entry)
    found = [
        Ranking(
            suite,
            tasks,
            tuple(group),
            rank(row for entry in group for row in entry.rows if not row.is_baseline),
            any(other == suite and is_newer(theirs, tasks) for other, theirs in groups),
        )
        for (suite, tasks), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.is_corrupted, one.suite, one.superseded, one.tasks)))


def is_newer(tasks: Sequence[str], others: Sequence[str]) -> bool:
    """Whether of the tasks in both lists, some have a higher version in the first and none a lower one."""
    mine, theirs = versions(tasks), versions(others)
    steps = [version - theirs[name] for name, version in mine.items() if name in theirs]
    return any(step > 0 for step in steps) and all(step >= 0 for step in steps)


def versions(tasks: Sequence[str]) -> dict[str, int]:
    """`FrozenLake/v2@envpool` -> FrozenLake@envpool: 2; what has no version counts as 0."""
    found = {}
    for task in tasks:
        name, _, variation = task.partition("@")
        name, _, version = name.rpartition("/v")
        found[f"{name}@{variation}"] = int(version) if version.isdecimal() else 0
    return found


def rank(rows: Iterable[BoardRow]) -> tuple[BoardRow, ...]:
    """Largest mean AUC difference first; rows without one last; ties by key and spec."""
    return tuple(sorted(rows, key=lambda row: (-(row.delta.mean if row.delta else -np.inf), row.key, row.spec)))


def task_cells(cells: Sequence[CellRun], spec: str, task: str) -> list[CellRun]:
    """The cells of one filter on one task, sorted by seed."""
    return cells_of([cell for cell in cells if cell.task == task], spec)


def _board_row(entry: Entry, comparison: Comparison, spec: str, joint: JointTest | None) -> BoardRow:
    rows = [(task.task, row) for task in comparison.tasks for row in task.rows if row.spec == spec]
    tasks = [task.task for task in comparison.tasks]
    test = joint.test if joint else None
    aggregate = next((each for each in comparison.aggregates if each.spec == spec), None)
    smallest = min(1.0, len(comparison.joint) * test.smallest_p) if test else None
    return BoardRow(
        key=entry.key,
        spec=spec,
        is_baseline=spec == BASELINE,
        tasks=tuple(_task_result(task, row) for task, row in rows),
        delta=paired_interval(joint.differences) if joint and test else None,
        pairs=len(joint.differences) if joint else 0,
        p=test.p if test else None,
        p_holm=joint.p_holm if joint and test else None,
        smallest_p_holm=smallest,
        verdict=_verdict(joint, smallest),
        effect=joint.effect if joint and test else None,
        detectable=joint.detectable if joint and test else None,
        score=aggregate.iqm if aggregate else None,
        improvement=aggregate.improvement if aggregate else None,
        se_peak=_saving([row.versus.se_peak for _, row in rows if row.versus]),
        se_ave=_saving([row.versus.se_ave for _, row in rows if row.versus]),
        rt_peak=_saving([row.versus.rt_peak for _, row in rows if row.versus]),
        time_ratio=_time_ratio(entry.cells, spec, tasks) if joint and test else None,
        kept=float(np.mean([row.kept.mean() for _, row in rows])),
        filter_share=float(np.mean([row.filter_share.mean() for _, row in rows])),
    )


def _verdict(joint: JointTest | None, smallest: float | None) -> Verdict:
    if joint is None or joint.test is None or smallest is None:
        return "not computed"
    if joint.p_holm <= ALPHA:
        return "helps" if joint.differences.mean() > 0 else "harms"
    return "too few runs" if smallest > ALPHA else "not shown"


def _task_result(task: str, row: Row) -> TaskResult:
    versus = row.versus
    return TaskResult(
        task=task,
        final=float(row.final.mean()),
        final_error=_standard_error(row.final),
        auc=float(row.auc.mean()),
        delta=versus.interval if versus else None,
        p=versus.test.p if versus else None,
        smallest_p=versus.test.smallest_p if versus else None,
        paired_t=versus.paired_t if versus else None,
        wilcoxon=versus.wilcoxon if versus else None,
        effect=versus.effect if versus else None,
        detectable=versus.detectable if versus else None,
        se_peak=_saving([versus.se_peak] if versus else []),
        se_ave=_saving([versus.se_ave] if versus else []),
        rt_peak=_saving([versus.rt_peak] if versus else []),
        kept=float(row.kept.mean()),
        filter_share=float(row.filter_share.mean()),
    )


def _saving(reductions: Sequence[Reduction]) -> Saving | None:
    if not reductions:
        return None
    values = np.concatenate([reduction.values for reduction in reductions])
    return Saving(float(values.mean()), sum(int(reduction.censored.sum()) for reduction in reductions), len(values))


def _time_ratio(cells: Sequence[CellRun], spec: str, tasks: Sequence[str]) -> float:
    logs = [
        np.log(ours.seconds[-1] / theirs.seconds[-1])
        for task in tasks
        for ours, theirs in zip(task_cells(cells, spec, task), task_cells(cells, BASELINE, task), strict=True)
    ]
    return float(np.exp(np.mean(logs)))


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
