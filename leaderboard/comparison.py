"""How does each filter compare with the baseline: on each task, and over all tasks together?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from filters.errors import UsageError
from harness.store import CellFailure, CellRun
from leaderboard import metrics
from leaderboard.significance import (
    Interval,
    SignFlip,
    detectable_effect,
    effect_size,
    holm,
    paired_interval,
    sign_flip,
)

Array = NDArray[np.float64]

Cell = CellRun | CellFailure

OWN_KEYS = ("seed", "filter", "apply")
"""names that `args` may repeat from above it in config.json; they differ between cells by design"""


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
    effect: float
    """d_z; NaN for one seed"""
    detectable: float
    """smallest d_z found with 80 % power; NaN for one seed"""


@dataclass(frozen=True, eq=False)
class Row:
    """One filter on one task; all arrays are [S], in the order of the seeds."""

    spec: str
    seeds: tuple[int, ...]
    final: Array
    """return at the last checkpoint, in the task's own unit"""
    auc: Array
    """normalised: 0 is a random policy, 1 a solved task"""
    kept: Array
    """share of the records that the updates could use, mean over rounds"""
    filter_share: Array
    """the filter's share of the training seconds"""
    versus: Versus | None
    """None for the baseline, and where nothing can be compared"""


@dataclass(frozen=True, eq=False)
class TaskComparison:
    """All filters on one task; the baseline first."""

    task: str
    rows: tuple[Row, ...]
    failures: tuple[CellFailure, ...]
    problems: tuple[str, ...]
    """why a comparison is missing, a sentence each"""


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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything a report says."""

    baseline: str | None
    tasks: tuple[TaskComparison, ...]
    joint: tuple[JointTest, ...]

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
    _refuse_twins(cells)
    both: list[Cell] = [*cells, *failures]
    names = sorted({cell.task for cell in both})
    tasks = tuple(
        _compare_task(
            name,
            [cell for cell in cells if cell.task == name],
            [failure for failure in failures if failure.task == name],
            baseline=baseline,
        )
        for name in names
    )
    return Comparison(baseline, tasks, _joint(tasks, baseline))


def _refuse_twins(cells: Sequence[CellRun]) -> None:
    seen: dict[tuple[str, str, int], CellRun] = {}
    for cell in cells:
        twin = seen.setdefault((cell.task, cell.spec, cell.seed), cell)
        if twin is not cell:
            raise UsageError(
                f"{twin.path} and {cell.path} are both {cell.spec} on {cell.task} with seed {cell.seed}; "
                "report on a folder that holds only one of them"
            )


def _compare_task(
    task: str, cells: list[CellRun], failures: list[CellFailure], *, baseline: str | None
) -> TaskComparison:
    both: list[Cell] = [*cells, *failures]
    specs = sorted({cell.spec for cell in both}, key=lambda spec: (spec != baseline, spec))
    problems = []
    if baseline is not None and baseline not in specs:
        problems.append(f"nothing is compared, because the baseline {baseline} was not run; run it too")
    rows = []
    for spec in specs:
        versus = None
        if baseline in specs and spec != baseline:
            problem = _missing_seeds(cells, failures, spec, baseline) or _mismatch(cells, spec, baseline)
            if problem:
                problems.append(f"{spec} is not compared with {baseline}, because {problem}")
            else:
                versus = _versus(_of(cells, spec), _of(cells, baseline))
        rows.append(_row(spec, _of(cells, spec), versus))
    ordered = sorted(failures, key=lambda failure: (specs.index(failure.spec), failure.seed))
    return TaskComparison(task, tuple(rows), tuple(ordered), tuple(problems))


def _of(cells: Sequence[CellRun], spec: str | None) -> list[CellRun]:
    return sorted((cell for cell in cells if cell.spec == spec), key=lambda cell: cell.seed)


def _missing_seeds(cells: list[CellRun], failures: list[CellFailure], spec: str, baseline: str | None) -> str | None:
    """Which of the two lacks which seeds; a seed that failed on both sides is missing on both."""
    both: list[Cell] = [*cells, *failures]
    expected = {cell.seed for cell in both if cell.spec in (spec, baseline)}
    sentences = []
    for side in (spec, baseline):
        missing = sorted(expected - {cell.seed for cell in cells if cell.spec == side})
        if missing:
            plural, verb = ("s", "are") if len(missing) > 1 else ("", "is")
            sentences.append(f"seed{plural} {', '.join(map(str, missing))} {verb} missing for {side}")
    return " and ".join(sentences) or None


def _mismatch(cells: list[CellRun], spec: str, baseline: str | None) -> str | None:
    """What differs between cells that must be alike in everything but filter and seed."""
    ours, theirs = _of(cells, spec), _of(cells, baseline)
    for group in (ours, theirs):
        for cell in group:
            difference = _differing(group[0], cell, ("filter_class", "filter_fields", "apply"))
            if difference:
                return f"{cell.spec} has {difference} between seeds {group[0].seed} and {cell.seed}"
    for cell in [*theirs, *ours]:
        difference = _differing(theirs[0], cell, ("agent", "device", "args", "references"))
        if difference is None and not np.array_equal(theirs[0].steps, cell.steps):
            difference = f"different checkpoints ({_axis(theirs[0])} against {_axis(cell)})"
        if difference:
            return (
                f"the runs have {difference}: {baseline} with seed {theirs[0].seed} "
                f"against {cell.spec} with seed {cell.seed}"
            )
    return None


def _differing(a: CellRun, b: CellRun, keys: tuple[str, ...]) -> str | None:
    """The first setting that differs, with both values."""
    for key in keys:
        left, right = _flat(key, a.config[key]), _flat(key, b.config[key])
        for name in sorted(left.keys() | right.keys()):
            if left.get(name) != right.get(name):
                return f"different {name} ({left.get(name)} against {right.get(name)})"
    return None


def _flat(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {key: value}
    own = OWN_KEYS if key == "args" else ()
    return {f"{key}.{name}": entry for name, entry in value.items() if name not in own}


def _axis(cell: CellRun) -> str:
    return f"{len(cell.steps)} up to step {cell.steps[-1]:,}"


def _row(spec: str, cells: list[CellRun], versus: Versus | None) -> Row:
    shares = [cell.phase_seconds.get("filter", 0.0) / max(cell.training_seconds, 1e-12) for cell in cells]
    return Row(
        spec=spec,
        seeds=tuple(cell.seed for cell in cells),
        final=np.array([cell.curve[-1] for cell in cells]),
        auc=np.array([_auc(cell) for cell in cells]),
        kept=np.array([cell.kept.mean() for cell in cells]),
        filter_share=np.array(shares),
        versus=versus,
    )


def _auc(cell: CellRun) -> float:
    scores = metrics.normalise(cell.curve, random=cell.references["random"], solved=cell.references["solved"])
    return float(metrics.auc(scores[None], cell.steps.astype(np.float64))[0])


def _versus(ours: list[CellRun], theirs: list[CellRun]) -> Versus:
    """Both sides sorted by seed, with the same seeds and checkpoints."""
    f, b = (np.stack([cell.curve for cell in side]) for side in (ours, theirs))
    f_seconds, b_seconds = (np.stack([cell.seconds for cell in side]) for side in (ours, theirs))
    steps = theirs[0].steps.astype(np.float64)
    pairs = zip(ours, theirs, strict=True)
    differences = np.array([_auc(our) - _auc(their) for our, their in pairs])
    return Versus(
        se_peak=metrics.se_peak(f, b, steps=steps),
        se_ave=metrics.se_ave(f, b, steps=steps),
        rt_peak=metrics.rt_peak(f, b, filter_seconds=f_seconds, baseline_seconds=b_seconds),
        differences=differences,
        interval=paired_interval(differences),
        test=sign_flip(differences),
        effect=effect_size(differences),
        detectable=detectable_effect(len(differences)),
    )


def _joint(tasks: tuple[TaskComparison, ...], baseline: str | None) -> tuple[JointTest, ...]:
    if baseline is None:
        return ()
    rows = [row for task in tasks for row in task.rows if row.spec != baseline]
    specs = sorted({row.spec for row in rows})
    pooled = [_pool([row for row in rows if row.spec == spec]) for spec in specs]
    tests = [sign_flip(differences) if differences.size else None for differences in pooled]
    adjusted = holm(np.array([test.p if test else 1.0 for test in tests]))
    return tuple(
        JointTest(spec, sum(row.spec == spec for row in rows), differences, test, float(p))
        for spec, differences, test, p in zip(specs, pooled, tests, adjusted, strict=True)
    )


def _pool(rows: list[Row]) -> Array:
    parts = [row.versus.differences for row in rows if row.versus is not None]
    return np.concatenate(parts) if len(parts) == len(rows) else np.empty(0)
