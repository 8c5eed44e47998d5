"""How are environments made and stepped, so that every agent sees the same semantics?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from algos.envs.envpool import EnvPoolVectorEnv
from algos.envs.interface import Backend, Envs, Step
from algos.envs.single import make_env


def make_vector_env(
    env_id: str, num_envs: int, kwargs: Mapping[str, Any] | None = None, backend: Backend = "gymnasium"
) -> Envs:
    """N environments side by side on either backend.

    Args:
        env_id: a Gymnasium id, on both backends.
        num_envs: N.
        kwargs: options of the environment.
        backend: `gymnasium` (the reference) or `envpool`.

    Raises:
        UsageError: unknown id, options that the backend does not have, spaces that no agent here takes, or a package
            that is missing.
    """
    if backend == "gymnasium":
        return VectorEnv(env_id, num_envs, kwargs)
    return EnvPoolVectorEnv(env_id, num_envs, kwargs)


class VectorEnv:
    """The reference backend: Gymnasium environments, stepped one after the other (see `algos.envs.interface.Envs`)."""

    def __init__(self, env_id: str, num_envs: int, kwargs: Mapping[str, Any] | None = None) -> None:
        self.envs = SyncVectorEnv(
            [lambda: make_env(env_id, kwargs)] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP, copy=False
        )
        self.num_envs = num_envs
        self.obs_space = self.envs.single_observation_space
        self.action_space = self.envs.single_action_space
        self.lives = np.zeros(num_envs, np.int64)

    def reset(self, seeds: Sequence[int]) -> NDArray[Any]:
        """Start N episodes, environment i with seeds[i]; returns observations [N, *obs]."""
        obs, info = self.envs.reset(seed=list(seeds))
        self.lives = info.get("lives", self.lives)
        return np.array(obs)

    def step(self, actions: NDArray[Any]) -> Step:
        """Take actions [N, *act]; an environment whose episode ends starts its next one within the same step."""
        obs, rewards, terminated, truncated, info = self.envs.step(actions)
        done = terminated | truncated
        obs = np.array(obs)
        final_obs = obs
        if "final_obs" in info:
            final_obs = obs.copy()
            for i in np.flatnonzero(done):
                final_obs[i] = info["final_obs"][i]
        lives = info.get("lives", self.lives)
        life_lost, self.lives = (lives < self.lives) & ~done, lives
        return Step(obs, rewards.astype(np.float32), terminated.copy(), truncated & ~terminated, final_obs, life_lost)

    def close(self) -> None:
        """Close all environments."""
        self.envs.close()
