"""Statistics along a ranking, by hand and against SciPy."""

import numpy as np
import pytest
from scipy import stats

from harness.rounds.ranking import describe, fifths, mean_interval, rank, running_mean, wilson


def test_a_ranking_worked_out_by_hand() -> None:
    """Ten records; the fifths are pairs. Influence falls with the number, so the last two are the bottom."""
    influence = np.arange(10, 0, -1.0)
    estimate = np.ones(10)
    truth = np.array([1.0, 2, 3, 4, -1, 0, 5, 6, -2, -3])
    errors = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 2.0])
    shuffle = np.array([3, 1, 4, 0, 5, 9, 2, 6, 8, 7])
    ranking = rank(shuffle, influence[shuffle], estimate[shuffle], truth[shuffle], errors[shuffle])
    assert ranking.records.tolist() == list(range(10))
    assert {name: places.tolist() for name, places in fifths(ranking).items()} == {
        "bottom": [8, 9],
        "middle": [4, 5],
        "top": [0, 1],
    }
    found = describe(ranking)
    assert found["mismatch"] == {"bottom": 1.0, "middle": 0.5, "top": 0.0}, "a zero opposes nothing"
    assert found["clear"] == {"bottom": 1, "middle": 1, "top": 2}
    assert found["mismatch_clear"] == {"bottom": 1.0, "middle": 1.0, "top": 0.0}
    assert found["mean_gap"] == {"bottom": 3.5, "middle": 1.5, "top": 0.5}
    assert found["mismatch_overall"] == 0.3
    assert found["spearman_product"] == pytest.approx(stats.spearmanr(np.arange(10), truth).statistic)
    assert found["spearman_product"] < 0


def test_ties_share_their_rank_and_a_constant_has_no_correlation() -> None:
    influence, product = np.array([3.0, 3.0, 1.0, 0.0, 0.0]), np.array([1.0, 2.0, 2.0, -1.0, -1.0])
    ranking = rank(np.arange(5), influence, np.ones(5), product, None)
    assert describe(ranking)["spearman_product"] == pytest.approx(stats.spearmanr(-influence, product).statistic)
    assert describe(rank(np.arange(5), influence, np.ones(5), np.ones(5), None))["spearman_product"] is None


def test_intervals() -> None:
    found = mean_interval([1.0, 2.0, 3.0])
    assert found["mean"] == 2.0
    assert found["ci"] == pytest.approx([2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5], abs=1e-4)
    assert mean_interval([1.0])["ci"] is None
    low, high = wilson(0.5, 10)
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_running_means_shrink_at_the_ends() -> None:
    assert running_mean(np.array([1.0, 2.0, 3.0, 10.0]), 3).tolist() == [1.5, 2.0, 5.0, 6.5]
    assert running_mean(np.array([1.0, 2.0, 3.0]), 1).tolist() == [1.0, 2.0, 3.0]
