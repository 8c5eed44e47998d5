"""How good is a filter over a whole suite of tasks, and how sure is that?

Scores are normalised (0 a random policy, 1 a solved task) and come as [S, M]: S seeds, M tasks. Every interval is a
percentile interval of a stratified bootstrap: in every task by itself (tasks are the strata) S seeds are drawn with
replacement. It claims a little more than it knows: with five seeds, limits that are nominally at 95 % cover about 90 %
(iqm) and 92 % (probability of improvement) on two to six tasks of normal scores, so they describe and decide nothing.
On a single task it would be worse: with fewer than two seeds or two tasks there are no limits (NaN).

Source: Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice", arXiv 2108.13264.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from leaderboard.statistics.significance import Interval

Array = NDArray[np.float64]
Seeds = NDArray[np.int64]
"""[..., S, M]: which seed's score stands in each place of a table of scores, or how often it does"""

CHUNK = 1_000_000
"""drawn seeds that are worked on at once"""
DRAWS = 2_000
"""resamples of the bootstrap; an interval's limits then repeat to about 6 % of their standard error"""
CONFIDENCE = 0.95


class Profile(NamedTuple):
    """The share of runs above each threshold, with its limits; all [L], between 0 and 1."""

    fraction: Array
    low: Array
    high: Array


def iqm(scores: Array) -> float:
    """Interquartile mean over all runs: the mean without the lowest and the highest quarter of the S · M scores.

    floor(S · M / 4) scores go at each end, as in rliable.

    Args:
        scores: [S, M].

    Raises:
        ValueError: if it is no table of finite numbers.
    """
    return float(_iqm(_table(scores)))


def iqm_interval(scores: Array, *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """`iqm` with its 95 % limits.

    Args:
        scores: [S, M].
        draws: resamples of the bootstrap.
        seed: of those resamples.

    Raises:
        ValueError: if it is no table of finite numbers.
    """
    table = _table(scores)
    low, high = _limits(lambda seeds: _iqm(_pick(table, seeds)), table.shape, draws=draws, seed=seed)
    return Interval(float(_iqm(table)), float(low), float(high))


def probability_of_improvement(ours: Array, theirs: Array, *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """P(X > Y) + P(X = Y) / 2 for runs X of ours and Y of theirs on one task, mean over tasks, with 95 % limits.

    Per task it is the Mann–Whitney statistic over all S · S pairs of runs, divided by S · S. Row s of both tables
    is the same seed, so the bootstrap draws both sides of a seed together.

    Args:
        ours: [S, M].
        theirs: [S, M].
        draws: resamples of the bootstrap.
        seed: of those resamples.

    Returns:
        between 0 and 1; 0.5 is no difference.

    Raises:
        ValueError: if the tables differ in shape or are no tables of finite numbers.
    """
    x, y = _table(ours), _table(theirs)
    if x.shape != y.shape:
        raise ValueError(f"the two tables of scores must be [S, M] alike, not {x.shape} and {y.shape}")
    low, high = _limits(lambda seeds: _wins(x, y, _times(seeds)), x.shape, draws=draws, seed=seed)
    return Interval(float(_wins(x, y, np.ones(x.shape, dtype=np.int64))), float(low), float(high))


def performance_profile(scores: Array, taus: Array, *, draws: int = DRAWS, seed: int = 0) -> Profile:
    """F(τ) = the share of all S · M runs whose score is above τ, with pointwise 95 % limits.

    Args:
        scores: [S, M].
        taus: [L] thresholds, in the unit of the scores.
        draws: resamples of the bootstrap.
        seed: of those resamples.

    Raises:
        ValueError: if the scores are no table, or the thresholds no list, of finite numbers.
    """
    table, thresholds = _table(scores), np.asarray(taus, dtype=np.float64)
    if thresholds.ndim != 1 or not thresholds.size or not np.isfinite(thresholds).all():
        raise ValueError("thresholds must be a non-empty list of finite numbers")
    above = (table > thresholds[:, None, None]).astype(np.float64)  # [L, S, M]
    low, high = _limits(lambda seeds: _shares(above, _times(seeds)), table.shape, draws=draws, seed=seed)
    return Profile(above.mean(axis=(1, 2)), *np.broadcast_arrays(low, high, thresholds)[:2])


def _iqm(scores: Array) -> Array:
    """[..., S, M] -> [...]."""
    return np.asarray(stats.trim_mean(scores.reshape(*scores.shape[:-2], -1), 0.25, axis=-1))


def _wins(x: Array, y: Array, times: Seeds) -> Array:
    """[S, M] twice and [..., S, M] -> [...]: the share of pairs that x wins, ties counted half.

    By ranks: what S · S pairs of every draw would need does not fit into memory. Whole numbers, so nothing is rounded.
    """
    count, tasks = x.shape
    ahead = np.zeros(times.shape[:-2], dtype=np.int64)  # pairs won minus pairs lost
    for task in range(tasks):
        order = np.argsort(y[:, task])
        drawn = times[..., order, task].cumsum(axis=-1)
        up_to = np.concatenate([np.zeros_like(drawn[..., :1]), drawn], axis=-1)  # [..., S + 1]
        below, not_above = (np.searchsorted(y[order, task], x[:, task], side=side) for side in ("left", "right"))
        ahead += (times[..., task] * (up_to[..., below] + up_to[..., not_above] - count)).sum(axis=-1)
    return np.asarray((1 + ahead / (count * count * tasks)) / 2)


def _shares(above: Array, times: Seeds) -> Array:
    """[L, S, M] and [..., S, M] -> [L, ...]: by how often every run was drawn."""
    return np.asarray(np.tensordot(above, times.astype(np.float64), axes=([1, 2], [-2, -1])) / above[0].size)


def _times(seeds: Seeds) -> Seeds:
    """[B, S, M] -> [B, S, M]: how often each seed was drawn on each task."""
    draws, count, tasks = seeds.shape
    places = (np.arange(draws)[:, None, None] * count + seeds) * tasks + np.arange(tasks)
    return np.bincount(places.ravel(), minlength=seeds.size).reshape(seeds.shape)


def _pick(table: Array, seeds: Seeds) -> Array:
    return table[seeds, np.arange(table.shape[1])]


def _limits(
    statistic: Callable[[Seeds], Array], shape: tuple[int, ...], *, draws: int, seed: int
) -> tuple[Array, Array]:
    """The 95 % limits of a statistic of the drawn seeds.

    SciPy draws its samples independently, so one sample a task makes tasks the strata; a sample holds seeds rather
    than scores, so that both sides of a pair are drawn together.
    """
    count, tasks = shape
    if count < 2 or tasks < 2:
        return np.array(np.nan), np.array(np.nan)
    block = max(1, CHUNK // (count * tasks))

    def in_blocks(*drawn: Seeds, axis: int) -> Array:
        """All draws at once would take memory for each of them."""
        starts = range(0, max(1, len(drawn[0])), block)
        parts = [statistic(np.stack([of[start : start + block] for of in drawn], axis=-1)) for start in starts]
        return np.concatenate(parts, axis=-1)

    interval = stats.bootstrap(
        (np.arange(count, dtype=np.int32),) * tasks,
        in_blocks,
        vectorized=True,
        n_resamples=draws,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=seed,
    ).confidence_interval
    return interval.low, interval.high


def _table(scores: Array) -> Array:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError("scores must be a non-empty table [seeds, tasks] of finite numbers")
    return table
