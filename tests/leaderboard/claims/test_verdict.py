"""The verdict rule against numbers worked out by hand, bounds included."""

import math

import numpy as np
import pytest

from leaderboard.claims.verdict import ABOVE, BELOW, Finding, Region, Sample, conclude, judge, limits
from leaderboard.statistics.significance import Interval

ALIKE, NOT_WORSE = Region(-0.05, 0.05), Region(-0.05, math.inf)
T_4 = 2.776445
"""t(0.975, 4)"""


def sample(*values: float, bounds: int = 0) -> Sample:
    """Seeds of which the first ones are only bounds."""
    return Sample(np.array(values), np.arange(len(values)) < bounds)


def around(mean: float, half: float) -> Sample:
    """Five seeds whose 95 % interval is mean ± half."""
    spread = half / T_4 * math.sqrt(5) / math.sqrt(2.5)  # −2 … 2 have the variance 2.5
    return Sample(mean + spread * np.arange(-2.0, 3.0), np.zeros(5, dtype=bool))


@pytest.mark.parametrize(
    ("mean", "half", "region", "expected"),
    [
        (0.3, 0.2, ABOVE, "confirmed"),
        (0.2, 0.3, ABOVE, "not shown"),
        (-0.2, 0.3, ABOVE, "not shown"),
        (-0.3, 0.2, ABOVE, "contradicted"),
        (-0.3, 0.2, BELOW, "confirmed"),
        (0.3, 0.2, BELOW, "contradicted"),
        (-0.02, 0.02, NOT_WORSE, "confirmed"),  # worse, but by less than the margin
        (-0.04, 0.02, NOT_WORSE, "not shown"),
        (-0.1, 0.02, NOT_WORSE, "contradicted"),
        (0.3, 0.02, NOT_WORSE, "confirmed"),
        (0.02, 0.02, ALIKE, "confirmed"),
        (0.02, 0.04, ALIKE, "not shown"),
        (0.3, 0.2, ALIKE, "contradicted"),
        (-0.3, 0.2, ALIKE, "contradicted"),
        (0.05, 0.02, Region(-math.inf, 0.12), "confirmed"),
    ],
)
def test_the_interval_decides_by_where_it_lies(mean: float, half: float, region: Region, expected: str) -> None:
    found = judge(around(mean, half), region)
    assert found.verdict == expected
    assert found.interval == pytest.approx(Interval(mean, mean - half, mean + half), abs=1e-6)


def test_the_smallest_effect_is_that_of_the_spread_at_80_percent_power() -> None:
    found = judge(sample(-2.0, -1.0, 0.0, 1.0, 2.0), ABOVE)
    assert found.verdict == "not shown"
    assert found.detectable == pytest.approx(1.6818 * math.sqrt(2.5), abs=1e-3)  # d_z of five pairs times their spread


@pytest.mark.parametrize("bounds", [1, 5])
def test_a_bound_can_never_confirm_a_saving(bounds: int) -> None:
    values = (0.5, 0.51, 0.52, 0.53, 0.54)
    assert judge(sample(*values), ABOVE).verdict == "confirmed"
    found = judge(sample(*values, bounds=bounds), ABOVE)
    assert (found.verdict, found.bounds) == ("not shown", bounds)
    assert found.interval.low == -math.inf
    assert found.interval.high == limits(sample(*values), 0.95).high
    assert judge(sample(*values, bounds=bounds), ALIKE).verdict == "not shown"
    assert judge(sample(*values, bounds=bounds), NOT_WORSE).verdict == "not shown"


def test_a_bound_can_contradict_a_saving_and_confirm_a_loss() -> None:
    """The seed's own number lies below its bound, so what holds of the bounds holds of the numbers."""
    values = (-0.5, -0.51, -0.52, -0.53, -0.54)
    assert judge(sample(*values, bounds=2), ABOVE).verdict == "contradicted"
    assert judge(sample(*values, bounds=2), BELOW).verdict == "confirmed"
    assert judge(sample(0.5, 0.51, 0.52, 0.53, 0.54, bounds=2), BELOW).verdict == "not shown"


def test_one_of_many_parts_contradicts_only_at_a_corrected_level() -> None:
    barely = around(-0.3, 0.25)
    assert judge(barely, ABOVE).verdict == "contradicted"
    found = judge(barely, ABOVE, parts=5)
    assert found.verdict == "not shown"
    assert found.interval.high == pytest.approx(-0.05)  # what is shown stays at 95 %
    assert judge(around(-0.3, 0.1), ABOVE, parts=5).verdict == "contradicted"
    assert judge(around(0.3, 0.25), ABOVE, parts=5).verdict == "confirmed"  # all parts have to be, so no correction


def test_without_an_interval_or_without_spread_nothing_is_claimed_too_much() -> None:
    single = judge(sample(0.5), ABOVE)
    assert single.verdict == "not shown"
    assert math.isnan(single.detectable)
    assert judge(sample(0.5), BELOW).verdict == "not shown"
    assert judge(sample(0.0, 0.0, 0.0), ABOVE).verdict == "not shown"
    assert judge(sample(0.0, 0.0, 0.0), BELOW).verdict == "not shown"
    assert judge(sample(0.1, 0.1, 0.1), ABOVE).verdict == "confirmed"


def test_all_parts_confirm_and_one_contradicts() -> None:
    yes, no, open_ = (
        Finding(Interval(0, 0, 0), 5, 0, each, 0.0) for each in ("confirmed", "contradicted", "not shown")
    )
    assert conclude([yes, yes]) == "confirmed"
    assert conclude([yes, open_]) == "not shown"
    assert conclude([yes, no, open_]) == "contradicted"


def test_chance_confirms_as_rarely_as_the_page_says() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(0.0, 1.0, (4000, 5))
    verdicts = [judge(Sample(row, np.zeros(5, dtype=bool)), ABOVE).verdict for row in draws]
    assert verdicts.count("confirmed") / len(draws) == pytest.approx(0.025, abs=0.0075)  # three standard errors
    assert verdicts.count("contradicted") / len(draws) == pytest.approx(0.025, abs=0.0075)
