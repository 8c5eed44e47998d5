"""States that come back exactly, and looks that change nothing."""

from typing import Any

import numpy as np
import pytest
import torch

from algos.envs.single import make_env
from filters.errors import UsageError
from harness.rounds.snapshots import TakeSnapshot, can_copy, require_copy, restore
from tests.harness.rounds.test_montecarlo import train_on


@pytest.mark.parametrize(
    "env_id", ["FrozenLake-v1", "MiniGrid-DoorKey-8x8-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0"]
)
def test_a_state_comes_back_exactly(env_id: str) -> None:
    env, other = make_env(env_id), make_env(env_id)
    env.reset(seed=3)
    other.reset(seed=4)
    if "FrozenLake" in env_id:
        env, other = (make_env(env_id, {"is_slippery": False}) for _ in range(2))
        env.reset(seed=3)
        other.reset(seed=4)
    env.action_space.seed(0)
    for _ in range(3):
        env.step(env.action_space.sample())
    snapshot = TakeSnapshot()(env)
    actions = [env.action_space.sample() for _ in range(6)]
    wanted = [env.step(action) for action in actions]
    for _ in range(2):  # a future must not change the snapshot it came from
        restore(other, snapshot)
        for action, (obs, reward, terminated, truncated, _) in zip(actions, wanted, strict=True):
            found = other.step(action)
            np.testing.assert_array_equal(found[0], obs)
            assert found[1:4] == (reward, terminated, truncated)
            if terminated or truncated:
                break


def test_looking_changes_nothing() -> None:
    plain, watched = train_on("CartPole-v1"), train_on("CartPole-v1")
    first, second = plain.collect(), watched.collect(TakeSnapshot())
    assert torch.equal(first.rollout.obs, second.rollout.obs)
    assert torch.equal(first.rollout.rewards, second.rollout.rewards)
    assert len(second.seen) == second.rollout.n


def test_snapshots_are_those_of_the_records() -> None:
    training = train_on("CartPole-v1")
    moment = training.collect(TakeSnapshot())
    env: Any = make_env("CartPole-v1")
    env.reset(seed=0)
    for record in (0, 1, 37, 127):
        restore(env, moment.seen[record])
        np.testing.assert_allclose(env.unwrapped.state, moment.rollout.obs[record], rtol=1e-6)


def test_an_environment_that_cannot_be_copied_is_refused() -> None:
    env = make_env("LunarLander-v3")
    assert not can_copy(env)
    with pytest.raises(UsageError, match="can't be set to a state"):
        require_copy(env, "LunarLander/v1")
