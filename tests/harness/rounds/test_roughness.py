"""Roughness against graphs worked out by hand."""

from math import exp

import numpy as np
import pytest

from harness.rounds.roughness import roughness

PLACES = np.array([[0.0], [1.0], [50.0], [3.0]])
INFLUENCE = np.array([4.0, 2.0, -9.0, 1.0])
"""Nodes at 0, 1 and 3 with values 1, 1/2 and 1/4 (the negative record is none); distances 1, 3 and 2, median 2"""


def test_one_neighbour() -> None:
    """The nearest of 0 is 1, of 1 is 0, of 3 is 1: two edges, 0–1 with e^(−1/8) and 1–3 with e^(−4/8)."""
    near, far = exp(-1 / 8), exp(-4 / 8)
    expected = (near * 0.5**2 + far * 0.25**2) / (near + far)
    assert roughness(INFLUENCE, PLACES, neighbours=1) == pytest.approx(expected)


@pytest.mark.parametrize("neighbours", [2, 20])
def test_all_neighbours(neighbours: int) -> None:
    """Two neighbours are all that there are: the edge 0–3 with e^(−9/8) joins."""
    weights = [exp(-1 / 8), exp(-9 / 8), exp(-4 / 8)]
    squares = [0.5**2, 0.75**2, 0.25**2]
    expected = sum(w * s for w, s in zip(weights, squares, strict=True)) / sum(weights)
    assert roughness(INFLUENCE, PLACES, neighbours=neighbours) == pytest.approx(expected)


def test_an_even_spread_is_smooth_and_the_scale_does_not_matter() -> None:
    assert roughness(np.full(4, 3.0), PLACES, neighbours=2) == 0.0
    assert roughness(10 * INFLUENCE, PLACES, neighbours=1) == roughness(INFLUENCE, PLACES, neighbours=1)


def test_records_in_one_place() -> None:
    """Two at 0 with values 1 and 1/2, one far away: the median distance is 5, the twins weigh 1."""
    influence, places = np.array([2.0, 1.0, 1.0]), np.array([[0.0], [0.0], [5.0]])
    far = exp(-1 / 2)
    assert roughness(influence, places, neighbours=1) == pytest.approx((0.25 + far * 0.25) / (1 + far))
    assert roughness(np.array([2.0, 1.0]), np.zeros((2, 1)), neighbours=1) == pytest.approx(0.25)
    crowd = np.array([2.0, 1.0, 1.0, 1.0, 1.0]), np.array([[0.0]] * 4 + [[1.0]])
    assert roughness(*crowd, neighbours=4) == pytest.approx(3 * 0.25 / 6), "the median is 0: only twins are alike"


def test_too_few_nodes() -> None:
    assert roughness(np.array([1.0, -1.0]), np.zeros((2, 1)), neighbours=1) is None
    assert roughness(np.array([-1.0, -1.0]), np.zeros((2, 1)), neighbours=1) is None
