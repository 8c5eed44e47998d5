"""What does a policy earn, measured without favouring short episodes?"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Act = Callable[[NDArray[Any]], NDArray[Any]]
"""observations [m, *obs] -> actions [m, *act], stochastic, with its own random stream"""


def evaluate(
    act: Act, envs: Sequence[gym.Env[Any, Any]], seeds: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
            if terminated or truncated:
                upcoming = next(waiting, None)
                if upcoming is None:
                    continue
                episode, seen = upcoming, env.reset(seed=seeds[upcoming])[0]
            still.append((env, episode))
            next_obs.append(seen)
        playing, obs = still, next_obs
    return returns, lengths
