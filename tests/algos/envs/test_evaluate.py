"""Evaluation counts every episode once and whole, however many are played side by side."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from algos.envs.evaluate import AT_ONCE, SIDE_BY_SIDE, make_evaluator
from algos.envs.interface import Backend
from algos.envs.single import make_env
from algos.envs.vector import make_vector_env

SEEDS = list(range(100, 160))
E = len(SEEDS)

both = pytest.mark.parametrize("backend", ["gymnasium", "envpool"])


class Coin(gym.Env[Any, Any]):
    """An even seed pays 1 and ends at once; an odd one pays −0.25 a step for eight steps."""

    observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.short = seed % 2 == 0 if seed is not None else bool(self.np_random.integers(2))
        self.number = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.number += 1
        obs = np.full(1, self.number, np.float32)
        if self.short:
            return obs, 1.0, True, False, {}
        return obs, -0.25, False, self.number == 8, {}


gym.register(id="Coin-v0", entry_point=Coin)


def act(obs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A policy for CartPole without randomness: pushes to where the pole moves, at times not."""
    return ((obs[:, 3] > 0) ^ (np.abs(obs[:, 1]) > 0.6)).astype(np.int64)


def first_to_finish(env_id: str, kwargs: Any, backend: Backend, policy: Any, episodes: int) -> list[float]:
    """What most evaluation code does: many environments, the first `episodes` that end count."""
    envs = make_vector_env(env_id, 20, kwargs, backend)
    obs = envs.reset(list(range(20)))
    returns = np.zeros(20)
    ended: list[float] = []
    while len(ended) < episodes:
        step = envs.step(policy(obs))
        returns += step.rewards
        done = step.terminated | step.truncated
        ended += returns[done].tolist()
        returns[done] = 0
        obs = step.obs
    return ended[:episodes]


def test_short_episodes_are_not_favoured() -> None:
    """Half of the seeds end at once with 1, half after eight steps with −2: the mean is −0.5, exactly."""
    evaluator = make_evaluator("Coin-v0", {}, "gymnasium", E)
    returns, lengths = evaluator.play(lambda obs: np.zeros(len(obs), np.int64), SEEDS)
    assert returns.tolist() == [1, -2] * (E // 2)
    assert lengths.tolist() == [1, 8] * (E // 2)
    assert (returns.mean(), lengths.mean()) == (-0.5, 4.5)
    naive = first_to_finish("Coin-v0", {}, "gymnasium", lambda obs: np.zeros(len(obs), np.int64), 20)
    assert np.mean(naive) > 0.3


@both
def test_episodes_side_by_side_are_the_episodes_alone(backend: Backend) -> None:
    """CartPole pays 1 a step, so its short episodes are its bad ones; each seed's episode counts once."""
    evaluator = make_evaluator("CartPole-v1", None, backend, E)
    returns, lengths = evaluator.play(act, SEEDS)
    one = make_evaluator("CartPole-v1", None, backend, 1)
    alone = [one.play(act, [seed]) for seed in SEEDS]
    assert returns.tolist() == [float(found[0][0]) for found in alone]
    assert lengths.tolist() == [int(found[1][0]) for found in alone]
    assert returns.tolist() == lengths.tolist()
    assert (returns.dtype, lengths.dtype) == (np.float64, np.int64)
    assert returns.std() > 5
    assert np.mean(first_to_finish("CartPole-v1", None, backend, act, 20)) < returns.mean() - 3
    evaluator.close()


@both
def test_the_same_policy_and_seeds_give_the_same_episodes_at_every_call(backend: Backend) -> None:
    evaluator = make_evaluator("CartPole-v1", None, backend, E)
    first, _, third = (evaluator.play(act, seeds) for seeds in (SEEDS, SEEDS[::-1], SEEDS))
    assert (first[0].tolist(), first[1].tolist()) == (third[0].tolist(), third[1].tolist())
    evaluator.close()


@both
@pytest.mark.parametrize("episodes", [1, 3, SIDE_BY_SIDE, AT_ONCE + 5])
def test_any_number_of_episodes(backend: Backend, episodes: int) -> None:
    evaluator = make_evaluator("CartPole-v1", {"max_episode_steps": 5}, backend, episodes)
    returns, lengths = evaluator.play(act, list(range(episodes)))
    assert returns.tolist() == [5.0] * episodes
    assert lengths.tolist() == [5] * episodes
    evaluator.close()


def test_gymnasium_s_episodes_are_those_of_single_environments() -> None:
    """Rewards as they are, in float64, added step by step; MiniGrid's random walk written out here once more."""

    def turn(obs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return obs.reshape(len(obs), -1).astype(np.int64).sum(-1) % 3

    seeds = list(range(40))
    found = make_evaluator("MiniGrid-Empty-Random-5x5-v0", None, "gymnasium", 40).play(turn, seeds)
    env = make_env("MiniGrid-Empty-Random-5x5-v0")
    for seed, returned, length in zip(seeds, *found, strict=True):
        obs, _ = env.reset(seed=seed)
        total, count, over = 0.0, 0, False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(turn(obs[None])[0])
            total, count, over = total + float(reward), count + 1, terminated or truncated
        assert (total, count) == (returned, length)


@both
def test_a_lost_life_does_not_end_an_episode(backend: Backend) -> None:
    """A Breakout game of five lives, played at random, takes far longer than one life does."""
    rng = np.random.default_rng(0)
    evaluator = make_evaluator("ALE/Breakout-v5", None, backend, 3)
    _, lengths = evaluator.play(lambda obs: rng.integers(4, size=len(obs)), [1, 2, 3])
    assert (lengths > 100).all()
    evaluator.close()
