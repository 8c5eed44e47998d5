"""Does the joint test keep its promises on simulated runs: seldom a false alarm, and an effect found as predicted?

A comparison is five seeds on six tasks, 30 pairs; the tasks differ in their spread. A rate from n comparisons has the
Monte-Carlo standard error √(r (1 − r) / n), given beside each test; the seeds are fixed.
"""

import numpy as np
import pytest

from leaderboard.power import SIMULATED, joint_power, needed_seeds
from leaderboard.statistics import metrics
from leaderboard.statistics.significance import holm, sign_flips

SEEDS, TASKS = 5, 6
DRAWS = 9_999
"""sign patterns: p in steps of 1e-4, a tenth of what the report draws"""
SPREADS = np.linspace(0.02, 0.3, TASKS)


def normal_scores(rng, *shape):
    """[..., S, M]: spread around a mean of each task."""
    return 0.5 + SPREADS * rng.normal(size=(*shape, SEEDS, TASKS))


def bimodal_scores(rng, *shape):
    """[..., S, M]: a run fails or solves its task; from task to task 20 % to 80 % solve it."""
    solved = rng.random((*shape, SEEDS, TASKS)) < np.linspace(0.2, 0.8, TASKS)
    return np.where(solved, 0.9, 0.1) + 0.1 * normal_scores(rng, *shape)


def areas_under_curves(rng, *shape):
    """[..., S, M]: normalised AUC of ten noisy checkpoints of a policy that some day takes off."""
    steps = np.linspace(1000.0, 10_000.0, 10)
    start = rng.gamma(2.0, 4000.0, size=(*shape, SEEDS, TASKS, 1))  # many never do
    curves = 1 / (1 + np.exp((start - steps) / 500)) + 0.05 * rng.normal(size=(*shape, SEEDS, TASKS, 10))
    return metrics.auc(curves.reshape(-1, 10), steps).reshape(*shape, SEEDS, TASKS)


SCORES = [normal_scores, bimodal_scores, areas_under_curves]


def p_values(differences):
    """[..., S, M] -> [...]."""
    *shape, seeds, tasks = differences.shape
    return sign_flips(differences.reshape(-1, seeds * tasks), draws=DRAWS).reshape(shape)


def p_holm(differences):
    """[C, F, S, M] -> [C, F], adjusted over the F filters of each family."""
    return np.array([holm(family) for family in p_values(differences)])


@pytest.mark.parametrize("scores", SCORES)
def test_the_baseline_against_itself_is_rejected_in_five_percent(scores):
    """10,000 comparisons: standard error 0.22 points."""
    rng = np.random.default_rng(0)
    rejected = np.mean(p_values(scores(rng, 10_000) - scores(rng, 10_000)) <= 0.05)
    assert 0.04 <= rejected <= 0.06


@pytest.mark.parametrize("scores", SCORES)
def test_eight_filters_like_the_one_baseline_are_left_alone(scores):
    """4,000 families: standard error 0.34 points; sharing a baseline, the filters err together and so less often."""
    rng = np.random.default_rng(1)
    adjusted = p_holm(scores(rng, 4000, 8) - scores(rng, 4000, 1))
    assert 0.02 <= np.mean((adjusted <= 0.05).any(axis=1)) <= 0.06


def test_without_holm_the_families_would_be_rejected_far_too_often():
    """So the test above can fail."""
    rng = np.random.default_rng(1)
    raw = p_values(normal_scores(rng, 1000, 8) - normal_scores(rng, 1000, 1))
    assert np.mean((raw <= 0.05).any(axis=1)) > 0.15


def family_with_one_effect(rng, effect, *, count, filters, seeds, tasks):
    """[C, F, S, M] paired differences: filters like the baseline, but for the first, which is better by `effect`."""
    shape = (seeds, tasks)
    differences = (rng.normal(size=(count, filters, *shape)) - rng.normal(size=(count, 1, *shape))) / np.sqrt(2)
    differences[:, 0] += effect
    return differences


@pytest.mark.parametrize(
    ("effect", "filters", "seeds", "tasks"),
    [
        (0.55, 1, 5, 6),
        (0.7, 8, 5, 6),
        (1.3, 8, 2, 6),  # 12 pairs: every pattern is counted
        (1.6, 8, 3, 3),  # nine pairs: only the smallest p, 0.0039, is small enough
        (0.45, 8, 12, 6),  # 72 pairs: predicted without a simulation
    ],
)
def test_a_known_effect_is_found_at_the_predicted_rate(effect, filters, seeds, tasks):
    """2,000 families: standard error at most 1.1 points, and 0.9 of the prediction."""
    rng = np.random.default_rng(2)
    family = family_with_one_effect(rng, effect, count=2000, filters=filters, seeds=seeds, tasks=tasks)
    found = np.mean(p_holm(family)[:, 0] <= 0.05)
    predicted = joint_power(effect, seeds * tasks, filters=filters)
    assert 0.3 < predicted < 0.95
    assert found == pytest.approx(predicted, abs=0.05)


def test_the_needed_seeds_find_the_effect():
    """4,000 families: standard error 0.63 points, and 0.73 of the prediction."""
    seeds = needed_seeds(0.8, tasks=TASKS, filters=8)
    family = family_with_one_effect(np.random.default_rng(3), 0.8, count=4000, filters=8, seeds=seeds, tasks=TASKS)
    assert np.mean(p_holm(family)[:, 0] <= 0.05) >= 0.8 - 0.03
    fewer = np.mean(p_holm(family[:, :, 1:])[:, 0] <= 0.05)
    assert fewer < 0.8 + 0.03
    assert joint_power(0.8, (seeds - 1) * TASKS, filters=8) < 0.8 <= joint_power(0.8, seeds * TASKS, filters=8)


@pytest.mark.parametrize("filters", [1, 8])
def test_the_two_ways_to_predict_meet(filters, monkeypatch):
    simulated = joint_power(0.45, SIMULATED, filters=filters)
    monkeypatch.setattr("leaderboard.power.SIMULATED", 0)
    assert joint_power.__wrapped__(0.45, SIMULATED, filters=filters) == pytest.approx(simulated, abs=0.03)
