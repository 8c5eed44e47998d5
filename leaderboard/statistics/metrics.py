"""How much sooner does a filter reach what the baseline reaches, and how good is it on the way?

Curves are mean evaluation returns [S, K]: S seeds, K checkpoints. Row s of the filter and row s of the
baseline are the same seed. Everything is computed per seed; whoever calls aggregates.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reduction:
    """The share of the baseline's cost that a filter saves, per seed."""

    values: Array
    """[S], 1 = all, 0 = none, negative = it costs more; an upper bound where censored"""
    censored: NDArray[np.bool_]
    """[S], true where the filter never reached a level that counts"""


def normalise(returns: Array, *, random: float, solved: float) -> Array:
    """(returns − random) / (solved − random): 0 is a random policy, 1 a solved task. Any shape; no unit.

    Raises:
        ValueError: if the two references are equal.
    """
    if random == solved:
        raise ValueError(f"the references of a random and of a solved policy are equal ({random})")
    return (np.asarray(returns, dtype=np.float64) - random) / (solved - random)


def first_reach(curve: Array, axis: Array, level: float) -> float:
    """m(v) = axis at the first checkpoint whose return is at least v; infinity if there is none.

    Args:
        curve: [K] mean returns.
        axis: [K] the cost so far, in environment steps or in seconds of training; the result has its unit.
        level: v, in the unit of the curve.

    Source: Hu et al., arXiv 2505.19281, counted in environment steps instead of rounds.
    """
    reached = np.flatnonzero(curve >= level)
    return float(axis[reached[0]]) if reached.size else float("inf")


def se_peak(filter_curves: Array, baseline_curves: Array, *, steps: Array) -> Reduction:
    """SE_peak = 1 − m_f(v*) / m_b(v*) with v* = the baseline's highest return, in environment steps.

    Where the filter never reaches v*, m_f counts as the whole budget and the seed is censored.

    Args:
        filter_curves: [S, K].
        baseline_curves: [S, K].
        steps: [K], increasing, above 0.

    Raises:
        ValueError: if shapes disagree, a number is not finite, or the steps are not increasing.

    Source: Hu et al., arXiv 2505.19281; the rule for censored seeds is this project's.
    """
    axes = _shared_axis(filter_curves, steps)
    return _reduce(filter_curves, baseline_curves, axes, axes, levels=_peak)


def se_ave(filter_curves: Array, baseline_curves: Array, *, steps: Array) -> Reduction:
    """SE_ave = mean over v of 1 − m_f(v) / m_b(v), v = the distinct values of the baseline's running maximum.

    Where the filter never reaches a v, m_f(v) counts as the whole budget and the seed is censored.
    Arguments, errors and source as in `se_peak`.
    """
    axes = _shared_axis(filter_curves, steps)
    return _reduce(filter_curves, baseline_curves, axes, axes, levels=_running_maximum)


def rt_peak(
    filter_curves: Array, baseline_curves: Array, *, filter_seconds: Array, baseline_seconds: Array
) -> Reduction:
    """RT_peak: `se_peak` with seconds of training in place of environment steps.

    The whole budget of a filter is its own last checkpoint. A filter whose rounds are quicker may spend it
    before the baseline reaches v; it did not reach v, so that counts as no saving (0), never as a gain.

    Args:
        filter_curves: [S, K].
        baseline_curves: [S, K].
        filter_seconds: [S, K], not decreasing, above 0.
        baseline_seconds: [S, K], the same.

    Raises:
        ValueError: if shapes disagree, a number is not finite, or seconds run backwards.

    Source: Hu et al., arXiv 2505.19281; the rule for censored seeds is this project's.
    """
    return _reduce(filter_curves, baseline_curves, filter_seconds, baseline_seconds, levels=_peak)


def rt_ave(
    filter_curves: Array, baseline_curves: Array, *, filter_seconds: Array, baseline_seconds: Array
) -> Reduction:
    """RT_ave: `se_ave` with seconds of training in place of environment steps, otherwise as `rt_peak`."""
    return _reduce(filter_curves, baseline_curves, filter_seconds, baseline_seconds, levels=_running_maximum)


def auc(curves: Array, steps: Array) -> Array:
    """AUC = ∫ curve d(steps) / (last step − first step), by trapezoids: the mean height of the curve.

    With a single checkpoint it is that checkpoint's value.

    Args:
        curves: [S, K], usually normalised scores.
        steps: [K], increasing, above 0.

    Returns:
        [S], in the unit of the curves.

    Raises:
        ValueError: if shapes disagree, a number is not finite, or the steps are not increasing.

    Source: Jia et al., arXiv 2609.35072 (normalised area under the curve).
    """
    _check(curves, _shared_axis(curves, steps))
    if len(steps) == 1:
        return curves[:, 0].copy()
    area = np.asarray(np.trapezoid(curves, steps, axis=1), dtype=np.float64)
    return area / float(steps[-1] - steps[0])


def final_return(curves: Array) -> Array:
    """The last checkpoint of each seed: [S, K] -> [S], in the unit of the curves."""
    return curves[:, -1].copy()


def _peak(baseline: Array) -> Array:
    return np.array([baseline.max()])


def _running_maximum(baseline: Array) -> Array:
    levels: Array = np.unique(np.maximum.accumulate(baseline))
    return levels


def _shared_axis(curves: Array, steps: Array) -> Array:
    """Steps [K] as one axis a seed, [S, K]."""
    axis = np.asarray(steps, dtype=np.float64)
    if axis.ndim != 1 or np.any(np.diff(axis) <= 0):
        raise ValueError("steps must be one increasing axis [K]")
    return np.broadcast_to(axis, (len(curves), len(axis)))


def _check(curves: Array, axes: Array) -> None:
    if curves.ndim != 2 or curves.shape != axes.shape or not curves.size:
        raise ValueError(f"curves and axes must be [S, K] alike, not {curves.shape} and {axes.shape}")
    if not (np.isfinite(curves).all() and np.isfinite(axes).all()):
        raise ValueError("curves and axes must be finite")
    if np.any(axes <= 0) or np.any(np.diff(axes, axis=1) < 0):
        raise ValueError("steps and seconds must be above 0 and must not run backwards")


def _reduce(
    filter_curves: Array,
    baseline_curves: Array,
    filter_axes: Array,
    baseline_axes: Array,
    *,
    levels: Callable[[Array], Array],
) -> Reduction:
    if filter_curves.shape != baseline_curves.shape:
        raise ValueError(f"the filter has {filter_curves.shape} curves, the baseline {baseline_curves.shape}")
    _check(filter_curves, filter_axes)
    _check(baseline_curves, baseline_axes)
    values, censored = [], []
    for f, b, f_axis, b_axis in zip(filter_curves, baseline_curves, filter_axes, baseline_axes, strict=True):
        of_levels = [_reduction(f, b, f_axis, b_axis, level=float(level)) for level in levels(b)]
        values.append(np.mean([value for value, _ in of_levels]))
        censored.append(any(bound for _, bound in of_levels))
    return Reduction(np.array(values, dtype=np.float64), np.array(censored, dtype=np.bool_))


def _reduction(f: Array, b: Array, f_axis: Array, b_axis: Array, *, level: float) -> tuple[float, bool]:
    """1 − m_f / m_b at one level of one seed, and whether it is only a bound."""
    m_f, m_b = first_reach(f, f_axis, level), first_reach(b, b_axis, level)
    if np.isinf(m_f):
        # in steps the budget is at least m_b; in seconds it may be shorter, and giving up early is no saving
        return 1.0 - max(float(f_axis[-1]), m_b) / m_b, True
    return 1.0 - m_f / m_b, False
