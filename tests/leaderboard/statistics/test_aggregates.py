"""Aggregates over tasks against numbers worked out by hand, and their intervals against brute force."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from leaderboard.statistics import aggregates
from leaderboard.statistics.aggregates import iqm, iqm_interval, performance_profile, probability_of_improvement


def table(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def all_resamples(scores: np.ndarray) -> list[np.ndarray]:
    """Every way to draw the seeds anew in every task of [3, 2] scores: 27 per task, 729 in all."""
    draws = list(itertools.product(range(3), repeat=3))
    return [np.column_stack([scores[list(a), 0], scores[list(b), 1]]) for a, b in itertools.product(draws, draws)]


def test_iqm_leaves_out_a_quarter_of_all_runs_at_each_end():
    # sorted 0, 1, 2, 3, 4, 5, 9, 100: the two lowest and the two highest go, whichever task they come from
    assert iqm(table([0.0, 100.0], [1.0, 9.0], [2.0, 5.0], [3.0, 4.0])) == (2 + 3 + 4 + 5) / 4
    # of ten runs floor(2.5) = 2 go at each end
    assert iqm(np.arange(10.0).reshape(5, 2) ** 2) == np.mean(np.arange(2.0, 8.0) ** 2)
    assert iqm(table([7.0])) == 7.0


def test_probability_of_improvement_counts_ties_half():
    # task 1: (2 wins + 1 tie) of 4 pairs = 0.625; task 2: everything ties = 0.5
    ours, theirs = table([1.0, 0.3], [2.0, 0.3]), table([0.0, 0.3], [2.0, 0.3])
    assert probability_of_improvement(ours, theirs).mean == (0.625 + 0.5) / 2
    assert probability_of_improvement(theirs, ours).mean == 1 - (0.625 + 0.5) / 2
    assert probability_of_improvement(ours + 9, theirs) == (1.0, 1.0, 1.0)


def test_probability_of_improvement_is_the_mann_whitney_statistic():
    rng = np.random.default_rng(0)
    ours, theirs = (np.round(rng.normal(size=(5, 3)), 1) for _ in range(2))  # rounded, so that some tie
    by_task = stats.mannwhitneyu(ours, theirs, method="asymptotic").statistic / 25
    assert probability_of_improvement(ours, theirs).mean == pytest.approx(by_task.mean())


def test_limits_of_many_seeds_are_those_of_all_pairs_of_runs(monkeypatch):
    rng = np.random.default_rng(1)
    ours, theirs = (np.round(rng.normal(size=(40, 2)), 1) for _ in range(2))

    def all_pairs(*seeds, axis):
        x, y = (np.stack([scores[drawn, m] for m, drawn in enumerate(seeds)], axis=-1) for scores in (ours, theirs))
        return (1 + np.sign(x[:, :, None] - y[:, None]).mean(axis=(1, 2, 3))) / 2

    settings = {"vectorized": True, "n_resamples": 300, "method": "percentile", "rng": 0}
    expected = stats.bootstrap((np.arange(40),) * 2, all_pairs, **settings).confidence_interval
    assert probability_of_improvement(ours, theirs, draws=300)[1:] == tuple(expected)
    whole = [iqm_interval(ours, draws=300), performance_profile(ours, np.linspace(-1, 1, 5), draws=300)]
    monkeypatch.setattr(aggregates, "CHUNK", 1000)  # twelve draws at once
    assert probability_of_improvement(ours, theirs, draws=300)[1:] == tuple(expected)
    again = [iqm_interval(ours, draws=300), performance_profile(ours, np.linspace(-1, 1, 5), draws=300)]
    assert_array_equal(again[0], whole[0])
    assert_array_equal(again[1], whole[1])


def test_profile_is_the_share_of_runs_above_each_threshold():
    profile = performance_profile(table([0.0, 0.5], [0.5, 1.0]), np.array([-0.1, 0.0, 0.5, 1.0]))
    assert_array_equal(profile.fraction, [1.0, 0.75, 0.25, 0.0])
    assert np.all((profile.low <= profile.fraction) & (profile.fraction <= profile.high))
    assert (profile.low[0], profile.high[-1]) == (1.0, 0.0)


def test_limits_are_quantiles_over_the_resamples_within_each_task():
    ours, theirs = table([0.0, 10.0], [1.0, 30.0], [2.5, 5.0]), table([0.5, 10.0], [0.5, 20.0], [3.0, 2.0])
    resamples = list(zip(all_resamples(ours), all_resamples(theirs), strict=True))  # the same seeds on both sides

    def expected(statistic):
        return np.quantile([statistic(x, y) for x, y in resamples], [0.025, 0.975], axis=0, method="inverted_cdf")

    assert_allclose(iqm_interval(ours, draws=20_000)[1:], expected(lambda x, y: iqm(x)))
    wins = expected(lambda x, y: probability_of_improvement(x, y).mean)
    assert_allclose(probability_of_improvement(ours, theirs, draws=20_000)[1:], wins, atol=1e-12)
    taus = np.array([0.5, 8.0])
    shares = expected(lambda x, y: (x[..., None] > taus).mean(axis=(0, 1)))
    assert_allclose(performance_profile(ours, taus, draws=20_000)[1:], shares, atol=1e-12)


def test_scores_never_cross_tasks():
    # all seeds of a task agree, so drawing them anew changes nothing; drawing over all runs would
    scores = np.tile([0.0, 1.0, 5.0], (5, 1))
    assert iqm_interval(scores) == (iqm(scores),) * 3


def test_the_same_seed_gives_the_same_limits():
    scores = np.random.default_rng(1).normal(size=(5, 6))
    assert iqm_interval(scores) == iqm_interval(scores, seed=0)
    assert iqm_interval(scores) != iqm_interval(scores, seed=1)
    assert iqm_interval(scores, draws=100) != iqm_interval(scores, draws=200)


@pytest.mark.parametrize("shape", [(1, 3), (5, 1)])
def test_a_single_seed_or_task_has_no_limits(shape):
    scores = np.random.default_rng(2).normal(size=shape)
    assert np.isnan(iqm_interval(scores)[1:]).all()
    assert np.isnan(probability_of_improvement(scores, scores)[1:]).all()
    profile = performance_profile(scores, np.array([0.0, 0.1]))
    assert profile.fraction.shape == profile.low.shape == profile.high.shape == (2,)
    assert np.isnan(profile[1:]).all()


@pytest.mark.parametrize("bad", [np.empty((0, 2)), np.array([1.0, 2.0]), table([1.0, np.nan])])
def test_bad_tables_are_refused(bad):
    good = np.ones((1, 2))
    for call in (
        lambda: iqm(bad),
        lambda: iqm_interval(bad),
        lambda: probability_of_improvement(good, bad),
        lambda: performance_profile(bad, np.zeros(1)),
    ):
        with pytest.raises(ValueError, match="finite numbers"):
            call()
    with pytest.raises(ValueError, match="alike"):
        probability_of_improvement(good, np.ones((2, 2)))
    with pytest.raises(ValueError, match="thresholds"):
        performance_profile(good, np.array([np.inf]))
