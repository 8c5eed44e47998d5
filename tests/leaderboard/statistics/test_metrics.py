"""Metrics against numbers worked out by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leaderboard.statistics import metrics

STEPS = np.array([100.0, 200.0, 300.0, 400.0])


def curves(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_first_reach_is_the_first_checkpoint_at_or_above_the_level():
    curve = np.array([0.0, 0.5, 0.5, 0.2])
    assert metrics.first_reach(curve, STEPS, 0.5) == 200
    assert metrics.first_reach(curve, STEPS, 0.1) == 200
    assert metrics.first_reach(curve, STEPS, -1.0) == 100
    assert metrics.first_reach(curve, STEPS, 0.51) == np.inf


def test_se_peak_by_hand():
    baseline = curves([0.0, 0.2, 0.8, 0.6])  # peak 0.8 at step 300
    ours = curves([0.1, 0.9, 0.3, 0.3])  # 0.8 at step 200
    reduction = metrics.se_peak(ours, baseline, steps=STEPS)
    assert_allclose(reduction.values, [1 - 200 / 300])
    assert_array_equal(reduction.censored, [False])


def test_se_ave_by_hand_over_strictly_increasing_levels():
    baseline = curves([0.1, 0.1, 0.5, 0.3])  # levels 0.1 at 100, 0.5 at 300; the tie and the dip are no levels
    ours = curves([0.0, 0.6, 0.6, 0.6])  # both at 200
    reduction = metrics.se_ave(ours, baseline, steps=STEPS)
    assert_allclose(reduction.values, [((1 - 200 / 100) + (1 - 200 / 300)) / 2])
    assert not reduction.censored.any()


def test_a_level_never_reached_counts_the_whole_budget_and_marks_the_seed():
    baseline = curves([0.1, 0.5, 0.5, 0.5], [0.1, 0.5, 0.5, 0.5])
    ours = curves([0.2, 0.2, 0.2, 0.2], [0.5, 0.5, 0.5, 0.5])
    peak = metrics.se_peak(ours, baseline, steps=STEPS)
    assert_allclose(peak.values, [1 - 400 / 200, 1 - 100 / 200])
    assert_array_equal(peak.censored, [True, False])
    average = metrics.se_ave(ours, baseline, steps=STEPS)
    assert_allclose(average.values, [(0 + (1 - 400 / 200)) / 2, (0 + 0.5) / 2])
    assert_array_equal(average.censored, [True, False])


def test_a_peak_at_the_very_end_that_is_missed_is_bounded_by_zero():
    reduction = metrics.se_peak(curves([0, 0, 0, 0]), curves([0, 0, 0, 1]), steps=STEPS)
    assert_allclose(reduction.values, [0.0])
    assert_array_equal(reduction.censored, [True])


def test_flat_baseline_has_one_level_reached_at_once():
    flat = curves([0.3, 0.3, 0.3, 0.3])
    ours = curves([0.0, 0.3, 0.4, 0.4])
    for metric in (metrics.se_peak, metrics.se_ave):
        assert_allclose(metric(ours, flat, steps=STEPS).values, [1 - 200 / 100])
        assert_allclose(metric(flat, flat, steps=STEPS).values, [0.0])


def test_better_from_the_first_checkpoint():
    baseline = curves([0.1, 0.2, 0.3, 0.4])
    ours = curves([1.0, 1.0, 1.0, 1.0])
    assert_allclose(metrics.se_peak(ours, baseline, steps=STEPS).values, [0.75])
    assert_allclose(metrics.se_ave(ours, baseline, steps=STEPS).values, [(0 + 1 / 2 + 2 / 3 + 3 / 4) / 4])


def test_run_time_uses_each_side_s_own_seconds():
    baseline, ours = curves([0.0, 0.5, 1.0]), curves([0.0, 1.0, 1.0])
    seconds = {"filter_seconds": curves([2, 4, 6]), "baseline_seconds": curves([5, 10, 16])}
    assert_allclose(metrics.rt_peak(ours, baseline, **seconds).values, [1 - 4 / 16])
    average = [1 - 2 / 5, 1 - 4 / 10, 1 - 4 / 16]
    assert_allclose(metrics.rt_ave(ours, baseline, **seconds).values, [np.mean(average)])


def test_giving_up_sooner_is_no_saving_of_time():
    # the filter's whole run takes 3 s and never gets there; the baseline does after 10 s
    reduction = metrics.rt_peak(
        curves([0, 0]),
        curves([0, 1]),
        filter_seconds=curves([1, 3]),
        baseline_seconds=curves([5, 10]),
    )
    assert_allclose(reduction.values, [0.0])
    assert_array_equal(reduction.censored, [True])


def test_slower_filter_that_never_arrives_counts_its_own_budget():
    reduction = metrics.rt_peak(
        curves([0, 0]), curves([0, 1]), filter_seconds=curves([10, 20]), baseline_seconds=curves([5, 10])
    )
    assert_allclose(reduction.values, [-1.0])


def test_auc_is_the_trapezoid_over_the_step_range():
    assert_allclose(metrics.auc(curves([0, 1, 1, 0], [2, 2, 2, 2]), STEPS), [2 / 3, 2.0])
    uneven = np.array([100.0, 200.0, 500.0])
    assert_allclose(metrics.auc(curves([0, 1, 1]), uneven), [(50 + 300) / 400])


def test_one_checkpoint():
    step = np.array([100.0])
    assert_allclose(metrics.auc(curves([0.7], [0.1]), step), [0.7, 0.1])
    assert_allclose(metrics.se_peak(curves([0.7]), curves([0.5]), steps=step).values, [0.0])
    missed = metrics.se_ave(curves([0.4]), curves([0.5]), steps=step)
    assert_allclose(missed.values, [0.0])
    assert missed.censored.all()


def test_a_tie_at_every_checkpoint_saves_nothing():
    curve = curves([0.1, 0.4, 0.4, 0.9])
    seconds = {"filter_seconds": curves([1, 2, 3, 4]), "baseline_seconds": curves([1, 2, 3, 4])}
    for reduction in (
        metrics.se_peak(curve, curve, steps=STEPS),
        metrics.se_ave(curve, curve, steps=STEPS),
        metrics.rt_peak(curve, curve, **seconds),
        metrics.rt_ave(curve, curve, **seconds),
    ):
        assert_array_equal(reduction.values, [0.0])
        assert_array_equal(reduction.censored, [False])


def test_a_peak_that_the_baseline_reaches_twice_counts_from_the_first_time():
    baseline = curves([0.1, 0.8, 0.3, 0.8])
    assert_allclose(metrics.se_peak(curves([0.0, 0.0, 0.8, 0.8]), baseline, steps=STEPS).values, [1 - 300 / 200])


def test_a_flat_baseline_that_is_never_reached():
    flat = curves([0.3, 0.3, 0.3, 0.3])
    for metric in (metrics.se_peak, metrics.se_ave):
        reduction = metric(curves([0.2, 0.2, 0.2, 0.2]), flat, steps=STEPS)
        assert_allclose(reduction.values, [1 - 400 / 100])
        assert_array_equal(reduction.censored, [True])
    assert_allclose(metrics.auc(flat, STEPS), [0.3])


def test_run_time_over_levels_of_which_one_is_never_reached():
    # levels 0.2 at 4 s, 0.6 at 8 s, 0.9 at 12 s; the filter reaches two of them at 3 s and ends after 9 s
    reduction = metrics.rt_ave(
        curves([0.6, 0.6, 0.6]),
        curves([0.2, 0.6, 0.9]),
        filter_seconds=curves([3, 6, 9]),
        baseline_seconds=curves([4, 8, 12]),
    )
    assert_allclose(reduction.values, [((1 - 3 / 4) + (1 - 3 / 8) + 0) / 3])
    assert_array_equal(reduction.censored, [True])


def test_one_checkpoint_of_run_time():
    seconds = {"filter_seconds": curves([3], [3]), "baseline_seconds": curves([4], [4])}
    for metric in (metrics.rt_peak, metrics.rt_ave):
        reduction = metric(curves([0.7], [0.4]), curves([0.5], [0.5]), **seconds)
        assert_allclose(reduction.values, [1 - 3 / 4, 0.0])  # giving up after 3 s is no saving
        assert_array_equal(reduction.censored, [False, True])


def test_better_from_the_first_step_in_time_and_area():
    baseline, ours = curves([0.1, 0.2, 0.3, 0.4]), curves([0.5, 0.6, 0.7, 0.8])
    seconds = {"filter_seconds": curves([3, 6, 9, 12]), "baseline_seconds": curves([2, 4, 6, 8])}
    assert_allclose(metrics.rt_peak(ours, baseline, **seconds).values, [1 - 3 / 8])
    # the first level costs the baseline only 2 s, less than the filter's first checkpoint
    assert_allclose(metrics.rt_ave(ours, baseline, **seconds).values, [1 - np.mean([3 / 2, 3 / 4, 3 / 6, 3 / 8])])
    assert_allclose(metrics.auc(ours, STEPS) - metrics.auc(baseline, STEPS), [0.4])


def test_normalise_and_final_return():
    assert_allclose(metrics.normalise(np.array([-500.0, -290.0, -80.0]), random=-500, solved=-80), [0, 0.5, 1])
    assert_allclose(metrics.final_return(curves([1, 2], [3, 4])), [2, 4])
    with pytest.raises(ValueError, match="references"):
        metrics.normalise(np.array([1.0]), random=1, solved=1)


@pytest.mark.parametrize(
    ("ours", "baseline", "steps", "match"),
    [
        (curves([1, 2]), curves([1, 2], [1, 2]), np.array([1.0, 2.0]), "baseline"),
        (curves([1, 2, 3]), curves([1, 2, 3]), np.array([1.0, 2.0]), "alike"),
        (curves([1, np.nan]), curves([1, 2]), np.array([1.0, 2.0]), "finite"),
        (curves([1, 2]), curves([1, 2]), np.array([0.0, 2.0]), "above 0"),
        (curves([1, 2]), curves([1, 2]), np.array([2.0, 2.0]), "increasing"),
    ],
)
def test_bad_arrays_are_refused(ours, baseline, steps, match):
    with pytest.raises(ValueError, match=match):
        metrics.se_peak(ours, baseline, steps=steps)
