"""How are environments made and stepped, so that every agent sees the same semantics?"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from filters.errors import UsageError


class Step(NamedTuple):
    """What N environments answer to N actions."""

    obs: NDArray[Any]
    """[N, *obs] the next observation; after an episode's end already the first one of the next episode"""
    rewards: NDArray[np.float32]
    """[N]"""
    terminated: NDArray[np.bool_]
    """[N] the episode ended in a terminal state"""
    truncated: NDArray[np.bool_]
    """[N] the episode was cut off elsewhere, in a state that still has a value"""
    final_obs: NDArray[Any]
    """[N, *obs] the observation that the action led to, also at an episode's end"""


class VectorEnv:
    """N environments side by side with same-step reset: each step is one record, none is a mere reset.

    Args:
        env_id: a Gymnasium id.
        num_envs: N.
        kwargs: keyword arguments for the environment.

    Raises:
        UsageError: unknown id or options, or spaces that no agent here takes.
    """

    def __init__(self, env_id: str, num_envs: int, kwargs: Mapping[str, Any] | None = None) -> None:
        self.envs = SyncVectorEnv(
            [lambda: make_env(env_id, kwargs)] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP, copy=False
        )
        self.num_envs = num_envs
        self.obs_space = self.envs.single_observation_space
        self.action_space = self.envs.single_action_space

    def reset(self, seeds: Sequence[int]) -> NDArray[Any]:
        """Start N episodes, environment i with seeds[i]; returns observations [N, *obs]."""
        obs, _ = self.envs.reset(seed=list(seeds))
        return np.array(obs)

    def step(self, actions: NDArray[Any]) -> Step:
        """Take actions [N, *act]; an environment whose episode ends starts its next one within the same step."""
        obs, rewards, terminated, truncated, info = self.envs.step(actions)
        obs = np.array(obs)
        final_obs = obs
        if "final_obs" in info:
            final_obs = obs.copy()
            for i in np.flatnonzero(terminated | truncated):
                final_obs[i] = info["final_obs"][i]
        return Step(obs, rewards.astype(np.float32), terminated.copy(), truncated.copy(), final_obs)

    def close(self) -> None:
        """Close all environments."""
        self.envs.close()


def make_env(env_id: str, kwargs: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """One environment whose observation is an array: integers become one-hot, MiniGrid's dict its 7×7×3 image.

    Raises:
        UsageError: unknown id or options, or an observation that no agent here takes.
    """
    import minigrid  # noqa: F401  registers the MiniGrid ids

    try:
        env = gym.make(env_id, disable_env_checker=True, **(kwargs or {}))
    except (gym.error.Error, ImportError, TypeError) as error:
        raise UsageError(f"can't make environment {env_id!r} with options {dict(kwargs or {})}: {error}") from error
    if isinstance(env.observation_space, Dict) and "image" in env.observation_space.spaces:
        from minigrid.wrappers import ImgObsWrapper

        env = ImgObsWrapper(env)
    if isinstance(env.observation_space, Discrete):
        env = gym.wrappers.FlattenObservation(env)
    if not isinstance(env.observation_space, Box):
        raise UsageError(f"environment {env_id!r} observes {env.observation_space}; agents here take arrays (Box)")
    return env


def fragments(done: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the trajectory fragments of a rollout: each environment's stream is cut after every episode end.

    Args:
        done: [T, N] True where an episode ended.

    Returns:
        [T, N] numbers 0..U-1, ascending in time within an environment and environment by environment.
    """
    ended = np.concatenate([np.zeros_like(done[:1]), done[:-1]]).cumsum(axis=0, dtype=np.int64)
    count = ended[-1] + 1
    return ended + (count.cumsum() - count)
