"""The first rounds of every agent are those of tests/golden, made by scripts/rebaseline."""

import math

import pytest

from harness.checks.golden import RUNS, TOLERANCE, curve, difference, read


@pytest.mark.parametrize("agent", RUNS)
def test_the_first_rounds_are_as_they_were(agent: str) -> None:
    kept = read(agent)
    assert difference(kept["rounds"], curve(agent)) <= TOLERANCE, f"made with {kept['versions']}"


def test_differences_are_seen() -> None:
    kept = [{"loss": 1.0, "kept": 0.5}, {"loss": 2.0}]
    assert difference(kept, kept) == 0
    assert difference(kept, [{"loss": 1.0, "kept": 0.5}, {"loss": 2.2}]) == pytest.approx(0.2 / 2.2)
    assert math.isinf(difference(kept, kept[:1]))
    assert math.isinf(difference(kept, [{"loss": 1.0}, {"loss": 2.0}]))
