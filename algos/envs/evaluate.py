"""What does a policy earn, measured without favouring short episodes?"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from algos.envs.envpool import Pool, find_spec
from algos.envs.interface import Backend
from algos.envs.single import make_env

Act = Callable[[NDArray[Any]], NDArray[Any]]
"""observations [m, *obs] -> actions [m, *act], stochastic, with its own random stream"""

Episodes = tuple[NDArray[np.float64], NDArray[np.int64]]
"""returns [E] (undiscounted sums of rewards) and lengths [E] (steps)"""

SIDE_BY_SIDE = 32
"""Gymnasium environments; each is an object with a cost of its own"""
AT_ONCE = 128
"""EnvPool environments; an Atari game takes some megabytes"""


LONGEST = 100_000
"""steps after which an evaluation cuts an episode that does not end; all of EnvPool's have a limit"""


class Evaluator(Protocol):
    """Plays whole episodes in environments of its own; rewards are the environment's, a lost life ends nothing."""

    def play(self, act: Act, seeds: Sequence[int]) -> Episodes:
        """Play one episode a seed.

        The same policy and seeds give the same episodes at every call, save where an engine remembers earlier
        episodes (BipedalWalker's Box2D world); a whole run repeats in any case.
        """

    def close(self) -> None:
        """Close all environments."""


def make_evaluator(
    env_id: str, kwargs: Mapping[str, Any] | None = None, backend: Backend = "gymnasium", episodes: int = 20
) -> Evaluator:
    """An evaluator for that environment, made for about `episodes` episodes a call.

    Raises:
        UsageError: as `algos.envs.vector.make_vector_env`.
    """
    if backend == "gymnasium":
        return GymnasiumEvaluator(env_id, kwargs, episodes)
    return EnvPoolEvaluator(env_id, kwargs)


class GymnasiumEvaluator:
    """Single environments; one that ends its episode takes the next seed."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any] | None, episodes: int) -> None:
        self.envs = [make_env(env_id, kwargs) for _ in range(min(episodes, SIDE_BY_SIDE))]

    def play(self, act: Act, seeds: Sequence[int]) -> Episodes:
        """Play one episode a seed."""
        return evaluate(act, self.envs, seeds)

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()


class EnvPoolEvaluator:
    """One environment an episode, made anew at each call: EnvPool takes seeds only when it makes environments."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any] | None) -> None:
        find_spec(env_id, kwargs)
        self.env_id, self.kwargs = env_id, kwargs

    def play(self, act: Act, seeds: Sequence[int]) -> Episodes:
        """Play one episode a seed."""
        parts = [self.play_at_once(act, seeds[i : i + AT_ONCE]) for i in range(0, len(seeds), AT_ONCE)]
        returns, lengths = zip(*parts, strict=True)
        return np.concatenate(returns), np.concatenate(lengths)

    def play_at_once(self, act: Act, seeds: Sequence[int]) -> Episodes:
        """Play one episode a seed, all side by side; environments that ended theirs rest."""
        pool = Pool(self.env_id, seeds, self.kwargs)
        returns = np.zeros(len(seeds))
        lengths = np.zeros(len(seeds), np.int64)
        playing = np.arange(len(seeds))
        obs = pool.reset(playing)
        while len(playing):
            step = pool.step(act(obs), playing)
            returns[playing] += step.rewards
            lengths[playing] += 1
            going_on = ~(step.terminated | step.truncated)
            playing, obs = playing[going_on], step.obs[going_on]
        pool.close()
        return returns, lengths

    def close(self) -> None:
        """Nothing stays open between calls."""


def warn_of_endless(env: gym.Env[Any, Any]) -> None:
    """Say that an episode was cut."""
    name = env.spec.id if env.spec else type(env.unwrapped).__name__
    print(
        f"warning: an evaluation episode of {name} had not ended after {LONGEST:,} steps and was cut there; give the "
        "environment a time limit (max_episode_steps)",
        file=sys.stderr,
    )


def evaluate(act: Act, envs: Sequence[gym.Env[Any, Any]], seeds: Sequence[int]) -> Episodes:
    """Play one episode a seed and return every one's return and length, in the order of the seeds.

    Which episodes count is fixed before the first step and every one is played to its end, so many environments side
    by side don't favour short episodes. An environment that ends its episode takes the next seed; environments
    without one rest, so no step is wasted.

    Args:
        act: the policy.
        envs: single environments, played side by side.
        seeds: one an episode.

    Returns:
        returns [E] float64 (undiscounted sums of rewards) and lengths [E] int64 (steps).
    """
    returns = np.zeros(len(seeds))
    lengths = np.zeros(len(seeds), dtype=np.int64)
    waiting = iter(range(len(seeds)))
    playing = [(env, episode) for env, episode in zip(envs, waiting, strict=False)]
    obs = [env.reset(seed=seeds[episode])[0] for env, episode in playing]
    while playing:
        actions = act(np.stack(obs))
        still: list[tuple[gym.Env[Any, Any], int]] = []
        next_obs = []
        for (env, episode), action in zip(playing, actions, strict=True):
            seen, reward, terminated, truncated, _ = env.step(action)
            returns[episode] += float(reward)
            lengths[episode] += 1
            if lengths[episode] >= LONGEST and not (terminated or truncated):
                truncated = True
                warn_of_endless(env)
            if terminated or truncated:
                upcoming = next(waiting, None)
                if upcoming is None:
                    continue
                episode, seen = upcoming, env.reset(seed=seeds[upcoming])[0]
            still.append((env, episode))
            next_obs.append(seen)
        playing, obs = still, next_obs
    return returns, lengths
