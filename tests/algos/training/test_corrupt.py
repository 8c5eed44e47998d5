"""Records are made harmful exactly as said, seeded, and nothing else changes."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from algos import ppo, ppo_continuous
from algos.training.corrupt import KINDS, Corrupted, Corruption
from algos.training.recorder import SilentRecorder
from filters.errors import UsageError
from filters.registry import make

SEQUENCE = np.random.SeedSequence(7)
TRAJECTORY = np.array([[0, 3], [0, 3], [1, 3], [1, 4], [2, 4]])  # T = 5, N = 2, U = 5
ARGS = ppo.Args(num_envs=2, num_steps=64, minibatch_size=32, total_steps=256, update_epochs=2, eval_episodes=2)


def opened(text: str, round: int = 0, trajectory: Any = TRAJECTORY) -> Corrupted:
    return Corruption.parse(text).open(SEQUENCE, round, trajectory)


def test_flipped_advantages_change_sign_on_the_floor_of_the_fraction() -> None:
    advantages = np.arange(1.0, 11.0).reshape(5, 2)
    corrupted = opened("advantage-flip:0.25")
    flipped = corrupted.advantages(advantages)
    assert corrupted.marks.sum() == 2  # floor(0.25 · 10)
    assert np.array_equal(flipped, np.where(corrupted.marks, -advantages, advantages))


def test_noise_has_three_standard_deviations() -> None:
    trajectory = np.zeros((20_000, 1), np.int64)
    advantages = np.random.default_rng(0).normal(5, 2, (20_000, 1))
    corrupted = opened("advantage-noise:0.5", trajectory=trajectory)
    noise = (corrupted.advantages(advantages) - advantages)[corrupted.marks]
    assert len(noise) == 10_000
    assert abs(noise.mean()) < 0.3
    assert noise.std() == pytest.approx(6, rel=0.05)


def test_flipped_rewards_are_whole_trajectories_and_those_without_reward_stay_clean() -> None:
    rewards = np.array([[0, 1], [2, 0], [0, 0], [0, 5], [3, 0]], np.float32)  # trajectory 1 earns nothing
    corrupted = opened("reward-flip:1")
    assert np.array_equal(corrupted.rewards(rewards), -rewards)
    assert np.array_equal(corrupted.marks, TRAJECTORY != 1)
    some = opened("reward-flip:0.4")
    changed = some.rewards(rewards)
    units = {int(unit) for unit in np.unique(TRAJECTORY[some.marks])}
    assert len(units | {1}) in (2, 3)  # two trajectories, of which number 1 may be one
    assert np.array_equal(changed, np.where(some.marks, -rewards, rewards))


def test_shuffled_rewards_stay_within_their_trajectory() -> None:
    trajectory = np.repeat([0, 1, 2], 50)[:, None]
    rewards = np.random.default_rng(0).normal(size=(150, 1))
    corrupted = opened("reward-shuffle:0.67", trajectory=trajectory)
    changed = corrupted.rewards(rewards)
    for unit in range(3):
        assert np.array_equal(np.sort(changed[trajectory == unit]), np.sort(rewards[trajectory == unit]))
    assert corrupted.marks.sum() == 100


@pytest.mark.parametrize("space", [gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 2.0, (2,))])
def test_relabelled_actions_are_others_of_the_same_space(space: gym.Space[Any]) -> None:
    actions = np.stack([np.stack([space.sample() for _ in range(2)]) for _ in range(5)])
    corrupted = opened("action-relabel:0.5")
    stored = corrupted.actions(actions, space)
    different = (stored != actions).reshape(5, 2, -1).any(-1)
    assert corrupted.marks.sum() == 5
    assert np.array_equal(different, corrupted.marks)
    assert all(space.contains(action) for action in stored.reshape(10, *actions.shape[2:]))


def test_every_kind_leaves_the_other_columns_alone() -> None:
    numbers = np.arange(1.0, 11.0).reshape(5, 2)
    actions = np.ones((5, 2), np.int64)
    for kind in KINDS[1:]:
        corrupted = opened(f"{kind}:1")
        changed = {
            "action": corrupted.actions(actions, gym.spaces.Discrete(3)) is not actions,
            "reward": corrupted.rewards(numbers) is not numbers,
            "advantage": corrupted.advantages(numbers) is not numbers,
        }
        assert [name for name, different in changed.items() if different] == [kind.partition("-")[0]]


def test_draws_depend_on_seed_and_round_alone() -> None:
    def marks(seed: int, round: int) -> list[bool]:
        corrupted = Corruption("advantage-flip", 0.5).open(
            np.random.SeedSequence(seed), round, np.zeros((50, 1), np.int64)
        )
        corrupted.advantages(np.ones((50, 1)))
        return [bool(mark) for mark in corrupted.marks.reshape(-1)]

    assert marks(1, 3) == marks(1, 3)
    assert marks(1, 3) != marks(1, 4)
    assert marks(1, 3) != marks(2, 3)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_with_fraction_zero_a_run_is_byte_identical(kind: str) -> None:
    agents = [ppo.train(replace(ARGS, corrupt=text), make("iif"), SilentRecorder()) for text in ("none", f"{kind}:0")]
    for one, other in zip(agents[0].parameters(), agents[1].parameters(), strict=True):
        assert one.detach().numpy().tobytes() == other.detach().numpy().tobytes()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_corrupted_rollout_differs_where_the_marks_say_and_nowhere_else(kind: str) -> None:
    args = replace(ARGS, env_id="LunarLander-v3")
    harm = replace(args, corrupt=f"{kind}:0.5")
    clean, harmed = ppo.open_state(args), ppo.open_state(harm)
    one, _ = ppo.collect(clean, args, SilentRecorder())
    other, _ = ppo.collect(harmed, harm, SilentRecorder())
    assert harmed.corrupted is not None
    marks = torch.as_tensor(harmed.corrupted.marks.reshape(-1))
    assert marks.any()
    assert torch.equal(one.obs, other.obs), "the environment saw the same actions"
    column = {"advantage": "advantages", "reward": "rewards", "action": "actions"}[kind.partition("-")[0]]
    assert torch.equal(getattr(one, column)[~marks], getattr(other, column)[~marks])
    assert not torch.equal(getattr(one, column)[marks], getattr(other, column)[marks])
    if column == "advantages":
        assert torch.equal(one.returns, other.returns), "value targets stay as they were"


def test_a_relabelled_action_has_the_probability_of_the_stored_one() -> None:
    args = ppo_continuous.Args(num_steps=64, minibatch_size=32, corrupt="action-relabel:0.5")
    state = ppo_continuous.open_state(args)
    rollout, _ = ppo_continuous.collect(state, args, SilentRecorder())
    expected = ppo_continuous.log_prob(state.agent(rollout.obs), rollout.actions)
    torch.testing.assert_close(rollout.logprobs, expected.detach())


@pytest.mark.parametrize(
    "text",
    [
        "advantage-flip",
        "advantage-flip:1.5",
        "advantage-flip:nan",
        "advantage-flip:x",
        "reward-flop:0.2",
        "none:0.1",
        "",
    ],
)
def test_a_bad_corruption_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="corruption"):
        ppo.Args(corrupt=text)
