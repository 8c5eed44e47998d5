"""Is a difference between paired runs more than chance, and what could so few pairs have shown at all?"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Array = NDArray[np.float64]

ALPHA = 0.05
POWER = 0.8
DRAWS = 100_000
CHUNK = 200_000
"""numbers that are worked on at once, so that they stay in the cache"""
ROUNDING = 1e-13
"""two sums of the same differences are equal if they are this close, as a share of the sum of their sizes"""


class Interval(NamedTuple):
    """A mean (also of ranks or of the middle half) and its confidence limits, in the unit of what was averaged."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SignFlip:
    """The outcome of a sign-flip test."""

    p: float
    """two-sided"""
    smallest_p: float
    """the smallest p that the test can give for this many pairs"""
    exact: bool
    """whether every sign pattern was counted, rather than random ones"""


def paired_interval(differences: Array, *, confidence: float = 0.95) -> Interval:
    """mean ± t(1 − (1 − confidence)/2, S − 1) · SE, SE = sd / √S; five pairs at 95 %: ± 2.776 · SE.

    Args:
        differences: [S], filter minus baseline, one a seed.
        confidence: coverage, between 0 and 1.

    Returns:
        the interval; one pair has a mean but no limits (NaN).

    Raises:
        ValueError: if there is no pair or a difference is not finite.
    """
    values = _pairs(differences)
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return Interval(mean, float("nan"), float("nan"))
    half = float(stats.t.ppf(0.5 + confidence / 2, count - 1) * values.std(ddof=1) / np.sqrt(count))
    return Interval(mean, mean - half, mean + half)


def sign_flip(differences: Array, *, draws: int = DRAWS, seed: int = 0) -> SignFlip:
    """Two-sided test of "the sign of each difference is a fair coin", by the size of the mean, |mean|.

    With 2^m <= draws all patterns are counted: p = #{|mean of pattern| >= |mean|} / 2^m, at least 2 / 2^m.
    Otherwise `draws` random patterns are: p = (b + 1) / (draws + 1), with b those at least as extreme.

    Args:
        differences: [m], one a pair, unitless (scores of different tasks must be normalised).
        draws: random patterns, B.
        seed: of those patterns.

    Raises:
        ValueError: if there is no pair or a difference is not finite.

    Source: Phipson & Smyth 2010 for the (b + 1) / (B + 1).
    """
    values = _pairs(differences)
    p = float(sign_flips(values[None], draws=draws, seed=seed)[0])
    return SignFlip(p, smallest_p(len(values), draws=draws), exact=2 ** len(values) <= draws)


def sign_flips(differences: Array, *, draws: int = DRAWS, seed: int = 0) -> Array:
    """The p of `sign_flip` for many comparisons at once, all with the same sign patterns.

    Args:
        differences: [C, m], m pairs of each of C comparisons.
        draws: random patterns, B.
        seed: of those patterns.

    Returns:
        [C].

    Raises:
        ValueError: if there is no pair or a difference is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 2 or not values.shape[1] or not np.isfinite(values).all():
        raise ValueError("paired differences must be a non-empty table of finite numbers, a row a comparison")
    patterns = _sign_patterns(values.shape[1], draws, seed)
    unseen = 0 if 2 ** values.shape[1] <= draws else 1  # the pattern of the data itself is not among random ones
    return (_as_extreme(values, patterns) + unseen) / (len(patterns) + unseen)


def smallest_p(pairs: int, *, draws: int = DRAWS) -> float:
    """The smallest p that `sign_flip` can give: 2 / 2^m if all patterns are counted, else 1 / (draws + 1)."""
    return 2.0 ** (1 - pairs) if 2**pairs <= draws else 1 / (draws + 1)


def holm(p: Array) -> Array:
    """Holm's adjustment: the i-th smallest of m becomes max over j <= i of (m − j + 1) · p_(j), at most 1.

    Args:
        p: [m] raw p values, in any order.

    Returns:
        [m] adjusted p values in the same order.

    Raises:
        ValueError: if one is not between 0 and 1.

    Source: Holm 1979.
    """
    raw = np.asarray(p, dtype=np.float64)
    if not np.all((raw >= 0) & (raw <= 1)):
        raise ValueError("p values lie between 0 and 1")
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1)))
    return adjusted


def effect_size(differences: Array) -> float:
    """Cohen's d_z = mean / sd of the paired differences [m]; NaN for one pair or without any spread.

    Raises:
        ValueError: if there is no pair or a difference is not finite.
    """
    values = _pairs(differences)
    if len(values) == 1 or np.ptp(values) == 0:
        return float("nan")
    return float(values.mean() / values.std(ddof=1))


def paired_t(differences: Array) -> float:
    """Two-sided p of the paired t test, for differences [m]; NaN for one pair or without any spread.

    Raises:
        ValueError: if there is no pair or a difference is not finite.
    """
    values = _pairs(differences)
    if len(values) == 1 or np.ptp(values) == 0:
        return float("nan")
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def wilcoxon(differences: Array) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, for differences [m]; pairs without a difference are left out.

    SciPy's: exact up to 50 different sizes, by permutation up to 13 pairs with ties, else from the normal
    distribution. m pairs give at least 2 / 2^m, as the sign-flip test.

    Raises:
        ValueError: if there is no pair or a difference is not finite.
    """
    values = _pairs(differences)
    return float(stats.wilcoxon(values).pvalue) if np.any(values) else 1.0


def paired_power(effect: float, pairs: int, *, level: float = ALPHA) -> float:
    """How often a two-sided paired t test finds d_z = `effect` in normal differences; 0 for a single pair.

    T² of m pairs follows a noncentral F(1, m − 1) with noncentrality m · d_z².
    """
    if pairs < 2:
        return 0.0
    critical = stats.f.isf(level, 1, pairs - 1)
    return float(stats.ncf.sf(critical, 1, pairs - 1, pairs * effect**2))


@lru_cache(maxsize=64)  # a board asks for the same few hundreds of times
def detectable_effect(pairs: int, *, level: float = ALPHA) -> float:
    """The smallest d_z that a two-sided paired t test finds with 80 % power; five pairs at 5 %: 1.682.

    NaN for a single pair, and where not even d_z = 100 is enough.
    """
    if pairs < 2 or paired_power(100.0, pairs, level=level) < POWER:
        return float("nan")
    return float(optimize.brentq(lambda effect: paired_power(effect, pairs, level=level) - POWER, 1e-6, 100.0))


@lru_cache(maxsize=4)
def _sign_patterns(pairs: int, draws: int, seed: int) -> NDArray[np.uint8]:
    """[B, m / 8] bits, 1 for +: all patterns, or the random ones that SciPy's permutation test tries with that seed."""
    if 2**pairs <= draws:
        every = np.arange(2**pairs, dtype=">u4").view(np.uint8).reshape(-1, 4)
        return np.packbits(np.unpackbits(every, axis=1)[:, -pairs:], axis=1)
    random = np.random.default_rng(seed)
    block = max(1, CHUNK // pairs)
    blocks = [(min(block, draws - start), pairs) for start in range(0, draws, block)]
    return np.concatenate(
        [np.packbits(random.integers(2**32, size=size, dtype=np.uint32) & 1, axis=1) for size in blocks]
    )


def _as_extreme(values: Array, patterns: NDArray[np.uint8]) -> Array:
    """How many patterns [B, m / 8] bring the sum of each row of [C, m] at least as far from 0 as it is: [C]."""
    slack = ROUNDING * np.abs(values).sum(axis=1)  # a sum in another order must stay a tie
    limits = np.abs(values.sum(axis=1)) - slack
    counts = np.zeros(len(values))
    pairs = values.shape[1]
    block = max(1, CHUNK // pairs)
    for start in range(0, len(patterns), block):
        bits = np.unpackbits(patterns[start : start + block], axis=1, count=pairs)
        signs = 2.0 * bits.T - 1  # [m, block]
        rows = max(1, CHUNK // signs.shape[1])
        for first in range(0, len(values), rows):
            some = slice(first, first + rows)
            counts[some] += (np.abs(values[some] @ signs) >= limits[some, None]).sum(axis=1)
    return counts


def _pairs(differences: Array) -> Array:
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ValueError("paired differences must be a non-empty list of finite numbers")
    return values
