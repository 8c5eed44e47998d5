"""When is a claim confirmed or contradicted by paired runs, and what could they have shown at all? The rule, as code.

A claim says in which region a mean lies: "saves steps" is (0, ∞), "at least as good, give or take m" is (−m, ∞), "ends
alike" is (−m, m). The 95 % t interval of the seeds decides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaderboard.statistics.significance import ALPHA, Interval, detectable_effect, paired_interval

Array = NDArray[np.float64]
Verdict = Literal["confirmed", "contradicted", "not shown", "not tested"]

CHANCE = ALPHA / 2
"""how often a test on one part confirms a claim whose mean lies at the edge of its region, where this is most often"""


class Region(NamedTuple):
    """Where a claim says that the mean lies: strictly between the two."""

    low: float
    high: float


ABOVE = Region(0.0, math.inf)
BELOW = Region(-math.inf, 0.0)


@dataclass(frozen=True, eq=False)
class Sample:
    """One number a seed."""

    values: Array
    """[S]; an upper bound where `bound`"""
    bound: NDArray[np.bool_]
    """[S], true where the seed's own number may lie anywhere below"""


@dataclass(frozen=True)
class Finding:
    """What the seeds say of one part of a claim."""

    interval: Interval
    """mean and 95 % limits; with a bound among the seeds the mean is an upper bound and the lower limit −∞"""
    seeds: int
    bounds: int
    """seeds that are only bounds"""
    verdict: Verdict
    detectable: float
    """the smallest distance from the region's edge that such seeds show with 80 % power; NaN for one seed or without
    any spread"""


def judge(sample: Sample, region: Region, *, parts: int = 1) -> Finding:
    """Confirmed if the 95 % interval lies inside the region; contradicted if the corrected one lies outside of it.

    A claim on several parts is confirmed only if all of them are, which needs no correction, but one part is enough to
    contradict it: there the interval is at 1 − 5 % / parts.

    Args:
        sample: the seeds.
        region: what is claimed.
        parts: of the claim, this one included.

    Raises:
        ValueError: if there is no seed or a number is not finite.
    """
    interval, strict = limits(sample, 1 - ALPHA), limits(sample, 1 - ALPHA / parts)
    verdict: Verdict = "not shown"
    if _inside(interval, region):
        verdict = "confirmed"
    elif strict.high < region.low or strict.low > region.high:
        verdict = "contradicted"
    return Finding(interval, len(sample.values), int(sample.bound.sum()), verdict, detectable(sample.values))


def conclude(findings: Sequence[Finding]) -> Verdict:
    """All parts together: confirmed if all are, contradicted if one is."""
    verdicts = {finding.verdict for finding in findings}
    if verdicts == {"confirmed"}:
        return "confirmed"
    return "contradicted" if "contradicted" in verdicts else "not shown"


def limits(sample: Sample, confidence: float) -> Interval:
    """The t interval; from −∞ if a seed is only a bound, as its own number may lie anywhere below."""
    mean, low, high = paired_interval(sample.values, confidence=confidence)
    return Interval(mean, -math.inf if sample.bound.any() else low, high)


def detectable(values: Array) -> float:
    """The smallest mean that a two-sided paired t test at 5 % finds with 80 % power, at the spread of these seeds."""
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    return float(detectable_effect(len(values)) * values.std(ddof=1))


def _inside(interval: Interval, region: Region) -> bool:
    above = region.low == -math.inf or interval.low > region.low
    below = region.high == math.inf or interval.high < region.high
    return above and below and not math.isnan(interval.high)
