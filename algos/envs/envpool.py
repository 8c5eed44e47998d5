"""How does EnvPool, with its environments in C++, show the same semantics as the Gymnasium backend?"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

from algos.envs.extras import require_extra
from algos.envs.interface import Step
from filters.errors import UsageError

OF_THE_POOL = {
    *("num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path"),
    *("seed", "env_seed", "gym_reset_return_info", "reward_threshold"),
}
"""settings that EnvPool lists with an environment's options, though they are not the environment's"""

ATARI_OPTIONS = {"repeat_action_probability", "full_action_space", "mode", "difficulty"}
"""the options that both backends have; the others would undo the preprocessing"""

OWN_LIMIT = ("ALE/", "BabyAI-", "MiniGrid-", "highway-")
"""ids whose time limit is part of the environment itself (MiniGrid's reward depends on it)"""


class EnvPoolVectorEnv:
    """The fast backend: EnvPool's native environments on one thread (see `algos.envs.interface.Envs`)."""

    def __init__(self, env_id: str, num_envs: int, kwargs: Mapping[str, Any] | None = None) -> None:
        self.env_id, self.num_envs, self.kwargs = env_id, num_envs, kwargs
        spec = find_spec(env_id, kwargs)
        self.obs_space: gym.Space[Any] = obs_space(env_id, spec)
        self.action_space = action_space(spec)
        self.pool: Pool | None = None

    def reset(self, seeds: Sequence[int]) -> NDArray[Any]:
        """Start N episodes, environment i with seeds[i]; returns observations [N, *obs]."""
        self.close()
        self.pool = Pool(self.env_id, seeds, self.kwargs)
        return self.pool.reset(np.arange(self.num_envs))

    def step(self, actions: NDArray[Any]) -> Step:
        """Take actions [N, *act]; an environment whose episode ends starts its next one within the same step."""
        assert self.pool is not None, "reset comes before the first step"
        step = self.pool.step(actions, np.arange(self.num_envs))
        done = np.flatnonzero(step.terminated | step.truncated)
        if not len(done):
            return step
        obs = step.final_obs.copy()
        obs[done] = self.pool.reset(done)
        return step._replace(obs=obs)

    def close(self) -> None:
        """Close all environments."""
        if self.pool is not None:
            self.pool.close()
        self.pool = None


class Pool:
    """EnvPool environments with one seed each, any subset of which can be stepped or reset.

    An environment whose episode ended has to be reset before its next step: EnvPool would take that step for a reset.

    Raises:
        UsageError: as `algos.envs.vector.make_vector_env`.
    """

    def __init__(self, env_id: str, seeds: Sequence[int], kwargs: Mapping[str, Any] | None = None) -> None:
        import envpool

        spec = find_spec(env_id, kwargs)
        self.limit: int = spec.config.max_episode_steps
        options = dict(kwargs or {})
        if not env_id.startswith(OWN_LIMIT):
            # EnvPool calls a terminal state reached in the last step a truncation; with a step to spare it tells.
            options["max_episode_steps"] = self.limit + 1
        self.envs = envpool.make(
            native_id(env_id),
            env_type="gymnasium",
            num_envs=len(seeds),
            env_seed=list(seeds),
            num_threads=1,
            **options,
        )
        with quiet():
            native = self.envs.observation_space  # read here once; EnvPool keeps it
        self.one_hot = np.eye(int(native.n), dtype=np.int64) if isinstance(native, Discrete) else None
        self.actions = action_space(spec)
        self.action_dtype = spec.action_array_spec["action"].dtype
        self.lives = np.zeros(len(seeds), np.int64)

    def reset(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """Start an episode in the environments `ids`; returns their observations [m, *obs]."""
        obs, info = self.envs.reset(ids.astype(np.int32))
        self.lives[ids] = info.get("lives", 0)
        return self.observe(obs)

    def step(self, actions: NDArray[Any], ids: NDArray[np.int64]) -> Step:
        """Take actions [m, *act] in the environments `ids`; nothing is reset."""
        if isinstance(self.actions, Box):
            actions = np.clip(actions, self.actions.low, self.actions.high)
        seen, rewards, over, cut, info = self.envs.step(actions.astype(self.action_dtype), ids.astype(np.int32))
        terminated = over | cut & ended_itself(info, rewards) if cut.any() else over
        truncated = (cut | (info["elapsed_step"] >= self.limit)) & ~terminated
        lives = info.get("lives", self.lives[ids])
        life_lost = (lives < self.lives[ids]) & ~(terminated | truncated)
        self.lives[ids] = lives
        obs = self.observe(seen)
        return Step(obs, rewards.astype(np.float32), terminated, truncated, obs, life_lost)

    def observe(self, obs: Any) -> NDArray[Any]:
        """EnvPool's observations as the Gymnasium backend shows them, [m, *obs]."""
        if isinstance(obs, dict):
            obs = obs["image"]
        if self.one_hot is not None:
            return self.one_hot[obs]
        return obs.reshape(len(obs), -1) if obs.ndim == 3 else obs

    def close(self) -> None:
        """Close all environments."""
        self.envs.close()


def ended_itself(info: Mapping[str, Any], rewards: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Where an episode of an id in OWN_LIMIT ended in a terminal state, should that be its last step: [m].

    MiniGrid tells only by its reward; a fall into lava in the very last step of an episode goes unseen.
    """
    told = [info[key] for key in ("terminated", "crashed") if key in info]  # Atari, highway
    return told[0].astype(np.bool_) if told else rewards > 0


def native_id(env_id: str) -> str:
    """EnvPool's name of an environment."""
    return env_id.removeprefix("ALE/")


def find_spec(env_id: str, kwargs: Mapping[str, Any] | None) -> Any:
    """EnvPool's description of an environment with these options.

    Raises:
        UsageError: unknown id, an option that does not exist natively, or EnvPool is not installed.
    """
    require_extra(env_id, "envpool")
    import envpool

    try:
        config = envpool.make_spec(native_id(env_id)).config
    except KeyError as error:
        raise UsageError(f"EnvPool has no environment {env_id!r}; use the gymnasium backend") from error
    known = ATARI_OPTIONS if env_id.startswith("ALE/") else set(config._fields) - OF_THE_POOL
    if env_id.startswith(OWN_LIMIT):
        known -= {"max_episode_steps"}
    missing = " or ".join(repr(option) for option in sorted(set(kwargs or {}) - known))
    if missing:
        raise UsageError(
            f"EnvPool's {env_id} has no option {missing}; use the gymnasium backend (--env-backend gymnasium)"
        )
    try:
        return envpool.make_spec(native_id(env_id), **(kwargs or {}))
    except (TypeError, ValueError) as error:
        raise UsageError(f"EnvPool can't make {env_id!r} with options {dict(kwargs or {})}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """EnvPool states float32 bounds in float64, and Gymnasium warns of the rounding whenever it reads a space."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box (low|high)'s precision lowered", category=UserWarning)
        yield


def obs_space(env_id: str, spec: Any) -> Box:
    """The space of what `Pool.observe` returns.

    Shape and dtype are EnvPool's; its bounds of float observations are not to be relied on and become infinite.
    """
    with quiet():
        space = spec.gymnasium_observation_space
    if isinstance(space, Dict) and "image" in space.spaces:
        space = space["image"]
    if isinstance(space, Discrete):
        return Box(0, 1, (int(space.n),), np.int64)
    if not isinstance(space, Box):
        raise UsageError(f"environment {env_id!r} observes {space}; agents here take arrays (Box)")
    shape = (int(np.prod(space.shape)),) if len(space.shape) == 2 else space.shape
    if space.dtype == np.uint8:
        return Box(0, 255, shape, np.uint8)
    return Box(-np.inf, np.inf, shape, space.dtype.type)


def action_space(spec: Any) -> gym.Space[Any]:
    """The action space of one environment, with the true bounds of a Box."""
    with quiet():
        space: gym.Space[Any] = spec.gymnasium_action_space
    return Discrete(int(space.n)) if isinstance(space, Discrete) else space
