"""Are the records at the bottom of an influence ranking those whose advantage estimates are wrong?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

FIFTHS = ("bottom", "middle", "top")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Ranking:
    """m records from the most helpful to the most harmful, with what is known of their advantages."""

    records: NDArray[np.int64]
    """[m] their numbers in the rollout"""
    influence: Numbers
    """[m] the filter's scores, falling"""
    estimate: Numbers
    """[m] Â, as the update uses it (not normalised)"""
    truth: Numbers
    """[m] Ā"""
    errors: Numbers | None = None
    """[m] standard errors of Ā"""

    @property
    def product(self) -> Numbers:
        """[m] Ā·Â."""
        return self.truth * self.estimate

    @property
    def gap(self) -> Numbers:
        """[m] |Ā − Â|."""
        return np.abs(self.truth - self.estimate)

    @property
    def mismatch(self) -> NDArray[np.bool_]:
        """[m] Ā and Â have opposite signs; a zero opposes nothing."""
        opposed: NDArray[np.bool_] = self.product < 0
        return opposed

    @property
    def clear(self) -> NDArray[np.bool_]:
        """[m] Ā lies at least two standard errors from zero, so its sign is hardly chance; without errors all."""
        if self.errors is None:
            return np.ones(len(self.truth), np.bool_)
        clear: NDArray[np.bool_] = (np.abs(self.truth) > 2 * self.errors) & (self.truth != 0)
        return clear


def rank(
    records: NDArray[np.int64], influence: Numbers, estimate: Numbers, truth: Numbers, errors: Numbers | None
) -> Ranking:
    """Sort records [m] by falling influence; of equal ones the earlier comes first."""
    order = np.argsort(-influence, kind="stable")
    return Ranking(
        records=records[order],
        influence=influence[order],
        estimate=estimate[order],
        truth=truth[order],
        errors=None if errors is None else errors[order],
    )


def fifths(ranking: Ranking) -> dict[str, NDArray[np.int64]]:
    """The places of the bottom, the middle and the top fifth of the ranking, m // 5 each and at least one."""
    m = len(ranking.records)
    size = max(m // 5, 1)
    middle = (m - size) // 2
    return {
        "bottom": np.arange(m - size, m),
        "middle": np.arange(middle, middle + size),
        "top": np.arange(size),
    }


def describe(ranking: Ranking) -> dict[str, Any]:
    """The numbers of a ranking, ready for JSON.

    `mismatch` counts sign mismatches among all records of a fifth, `mismatch_clear` among those whose Ā has a clear
    sign. `spearman_product` is the rank correlation of the place in the ranking (1 = the most helpful) with Ā·Â:
    negative where harmful records are those with wrong estimates.
    """
    parts = fifths(ranking)
    return {
        "records": len(ranking.records),
        "mismatch": {name: share(ranking.mismatch[places]) for name, places in parts.items()},
        "mismatch_clear": {
            name: share(ranking.mismatch[places[ranking.clear[places]]]) for name, places in parts.items()
        },
        "clear": {name: int(ranking.clear[places].sum()) for name, places in parts.items()},
        "mean_gap": {name: float(ranking.gap[places].mean()) for name, places in parts.items()},
        "mismatch_overall": share(ranking.mismatch),
        "spearman_product": spearman(place(ranking), ranking.product),
        "spearman_gap": spearman(place(ranking), ranking.gap),
    }


def place(ranking: Ranking) -> Numbers:
    """[m] rank of each record, 1 = the most helpful; equal influences share their mean rank."""
    ranks: Numbers = stats.rankdata(-ranking.influence)
    return ranks


def share(flags: NDArray[np.bool_]) -> float | None:
    """Share of True, None of nothing."""
    return float(flags.mean()) if len(flags) else None


def spearman(first: Numbers, second: Numbers) -> float | None:
    """Spearman's rank correlation; None where one of them is constant."""
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(stats.spearmanr(first, second).statistic)


def mean_interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean and 95 % t interval of independent values; no interval for fewer than two."""
    numbers = np.asarray(values, np.float64)
    result: dict[str, Any] = {"n": len(numbers), "mean": float(numbers.mean()) if len(numbers) else None, "ci": None}
    if len(numbers) > 1:
        half = float(stats.t.ppf(0.975, len(numbers) - 1) * numbers.std(ddof=1) / np.sqrt(len(numbers)))
        result["ci"] = [float(numbers.mean()) - half, float(numbers.mean()) + half]
    return result


def wilson(hits: float, count: int) -> tuple[float, float]:
    """95 % Wilson score interval of a share of `count` cases."""
    interval = stats.binomtest(round(hits * count), count).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def running_mean(values: Numbers, window: int) -> Numbers:
    """Mean of the `window` values around each place [m]; fewer at the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    places = np.arange(len(values))
    low, high = np.maximum(places - window // 2, 0), np.minimum(places + (window + 1) // 2, len(values))
    means: Numbers = (sums[high] - sums[low]) / (high - low)
    return means
