"""Statistics against numbers worked out by hand, and their limits for few pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from leaderboard.statistics import significance
from leaderboard.statistics.significance import (
    detectable_effect,
    effect_size,
    holm,
    paired_interval,
    paired_power,
    paired_t,
    sign_flip,
    sign_flips,
    smallest_p,
    wilcoxon,
)


def test_five_pairs_interval_is_2_776_standard_errors():
    differences = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    mean, low, high = paired_interval(differences)
    error = np.sqrt(2.5) / np.sqrt(5)
    assert mean == 3.0
    assert_allclose([mean - low, high - mean], 2.776 * error, rtol=2e-4)
    assert (paired_interval(differences, confidence=0.5).high - mean) / error == pytest.approx(0.741, abs=1e-3)


def test_one_pair_has_a_mean_but_no_limits():
    mean, low, high = paired_interval(np.array([0.4]))
    assert mean == 0.4
    assert np.isnan([low, high]).all()
    assert sign_flip(np.array([0.4])) == significance.SignFlip(p=1.0, smallest_p=1.0, exact=True)
    assert np.isnan(effect_size(np.array([0.4])))
    assert np.isnan(detectable_effect(1))


def test_equal_differences_have_an_interval_of_width_zero():
    assert paired_interval(np.array([2.0, 2.0, 2.0])) == (2.0, 2.0, 2.0)
    assert np.isnan(effect_size(np.array([2.0, 2.0, 2.0])))


def test_sign_flip_of_five_pairs_by_hand():
    every_sign_agrees = sign_flip(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert every_sign_agrees == significance.SignFlip(p=2 / 32, smallest_p=0.0625, exact=True)
    # |sum| >= 11 of 15: flip {}, {1} or {2}, or all but these: 6 of 32 patterns
    assert sign_flip(np.array([1.0, -2.0, 3.0, 4.0, 5.0])).p == 6 / 32
    assert sign_flip(-np.array([1.0, -2.0, 3.0, 4.0, 5.0])).p == 6 / 32


def test_no_difference_at_all_gives_one():
    assert sign_flip(np.zeros(5)).p == 1.0
    assert sign_flip(np.zeros(30)).p == 1.0


def test_rounding_does_not_lose_ties():
    # 0.1 + 0.2 - 0.3 is not exactly 0 in floating point; all patterns reach the smallest |mean|
    assert sign_flip(np.array([0.1, 0.2, -0.3])).p == 1.0


def test_thirty_pairs_reach_the_floor_that_the_draws_set():
    test = sign_flip(np.full(30, 0.5) + np.linspace(0, 0.1, 30))
    assert test == significance.SignFlip(p=1 / 100_001, smallest_p=1 / 100_001, exact=False)


def test_random_patterns_repeat_and_agree_with_the_exact_test():
    differences = np.random.default_rng(3).normal(0.3, 1.0, 12)
    exact = sign_flip(differences)
    drawn = sign_flip(differences, draws=4000)
    assert exact.exact
    assert not drawn.exact
    assert drawn.p == pytest.approx(exact.p, abs=4 * np.sqrt(exact.p * (1 - exact.p) / 4000))
    assert drawn == sign_flip(differences, draws=4000)
    assert drawn != sign_flip(differences, draws=4000, seed=1)
    assert (drawn.p * 4001) == pytest.approx(round(drawn.p * 4001))


@pytest.mark.parametrize("pairs", [2, 5, 12, 30])
def test_it_is_scipy_s_permutation_test(pairs):
    rng = np.random.default_rng(pairs)
    many = np.round(rng.normal(0.3, 1.0, (4, pairs)), 1)  # rounded, so that patterns tie
    expected = [
        stats.permutation_test(
            (differences,),
            lambda x, axis: np.abs(x.mean(axis=axis)),
            permutation_type="samples",
            n_resamples=5000,
            alternative="greater",
            rng=7,
        ).pvalue
        for differences in many
    ]
    assert_allclose(sign_flips(many, draws=5000, seed=7), expected, atol=1e-12)
    assert_array_equal(sign_flips(many), [sign_flip(differences).p for differences in many])


@pytest.mark.parametrize(("pairs", "draws"), [(3, 100), (17, 1000), (21, 999)])
def test_the_sign_patterns_are_scipy_s(pairs, draws):
    tried = stats.permutation_test(
        (np.ones(pairs),),
        lambda signs, axis: signs,
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        alternative="greater",
        rng=4,
    ).null_distribution
    bits = np.unpackbits(significance._sign_patterns(pairs, draws, 4), axis=1, count=pairs)
    if 2**pairs <= draws:  # all of them, in an order of their own
        tried, bits = (np.unique(patterns, axis=0) for patterns in (tried, bits))
    assert_array_equal(bits, tried > 0)


def test_many_comparisons_do_not_depend_on_how_they_are_cut(monkeypatch):
    many = np.random.default_rng(5).normal(size=(13, 10))
    whole = sign_flips(many)
    monkeypatch.setattr(significance, "CHUNK", 600)  # ten comparisons and 60 of the 1,024 patterns at once
    assert_array_equal(sign_flips(many), whole)
    assert sign_flips(np.empty((0, 10))).shape == (0,)


@pytest.mark.parametrize("pairs", [16, 17])
def test_exact_as_long_as_all_patterns_fit(pairs):
    test = sign_flip(np.arange(1.0, pairs + 1))
    assert test.exact == (pairs == 16)
    assert test.smallest_p == (2**-15 if pairs == 16 else 1 / 100_001)


def test_the_test_keeps_its_promise_without_an_effect():
    rng = np.random.default_rng(0)
    rejected = sum(sign_flip(rng.normal(size=8)).p <= 0.05 for _ in range(400))
    assert 0 < rejected <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_holm_by_hand():
    # sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 = 0.04, 0.06, 0.06, 0.04, then never below the one before
    assert_allclose(holm(np.array([0.04, 0.01, 0.03, 0.02])), [0.06, 0.04, 0.06, 0.06])
    assert_allclose(holm(np.array([0.5, 0.9])), [1.0, 1.0])
    assert_allclose(holm(np.array([0.03])), [0.03])
    assert holm(np.array([])).size == 0
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(np.array([0.1, np.nan]))


def test_effect_size_by_hand():
    assert effect_size(np.array([1.0, 2.0, 3.0])) == 2.0


def test_paired_t_by_hand():
    # t = 2 / (1 / √3) = 2√3 with two degrees of freedom: p = 1 − t / √(t² + 2)
    assert paired_t(np.array([1.0, 2.0, 3.0])) == pytest.approx(1 - np.sqrt(12 / 14))
    assert np.isnan(paired_t(np.array([0.4])))
    assert np.isnan(paired_t(np.array([2.0, 2.0])))


def test_wilcoxon_by_hand():
    # ranks 1, 2, 3, 4, 5; the negative one has rank 2: a rank sum of at most 2 or at least 13 in 3 + 3 of 32 patterns
    assert wilcoxon(np.array([1.0, -2.0, 30.0, 4.0, 5.0])) == 6 / 32
    assert wilcoxon(np.array([1.0, 1.0, 1.0, 1.0, 1.0])) == smallest_p(5) == 0.0625
    assert wilcoxon(np.array([0.0, 0.0, 1.0, 2.0, 3.0])) == 2 / 8
    assert wilcoxon(np.zeros(5)) == wilcoxon(np.array([0.4])) == 1.0


@pytest.mark.parametrize(("pairs", "effect"), [(5, 1.682), (10, 0.996), (30, 0.529)])
def test_detectable_effect(pairs, effect):
    assert detectable_effect(pairs) == pytest.approx(effect, abs=5e-4)
    assert paired_power(detectable_effect(pairs), pairs) == pytest.approx(0.8)
    assert detectable_effect(pairs, level=0.01) > detectable_effect(pairs)


def test_the_power_of_one_pair_is_none():
    assert paired_power(9.0, 1) == 0.0
    assert paired_power(1e-9, 5) == pytest.approx(0.05)


def test_detectable_effect_has_eighty_percent_power_in_simulation():
    rng = np.random.default_rng(1)
    samples = rng.normal(detectable_effect(5), 1.0, (20_000, 5))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(5))
    assert np.mean(np.abs(t) > 2.7764) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("bad", [np.array([]), np.array([1.0, np.nan]), np.ones((2, 2))])
def test_bad_differences_are_refused(bad):
    for function in (paired_interval, sign_flip, effect_size, paired_t, wilcoxon):
        with pytest.raises(ValueError, match="finite numbers"):
            function(bad)


@pytest.mark.parametrize("bad", [np.ones(3), np.empty((2, 0)), np.array([[1.0, np.inf]])])
def test_bad_tables_of_differences_are_refused(bad):
    with pytest.raises(ValueError, match="a row a comparison"):
        sign_flips(bad)
