"""How are environments made and stepped, so that every agent sees the same semantics?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from algos.envs.extras import require_extra
from filters.errors import UsageError

Backend = Literal["gymnasium", "envpool"]
"""gymnasium is the reference; envpool steps the same environments in C++"""


class Step(NamedTuple):
    """What N environments answer to N actions."""

    obs: NDArray[Any]
    """[N, *obs] the next observation; after an episode's end already the first one of the next episode"""
    rewards: NDArray[np.float32]
    """[N] as the environment pays them, not clipped"""
    terminated: NDArray[np.bool_]
    """[N] the episode ended in a terminal state"""
    truncated: NDArray[np.bool_]
    """[N] the episode was cut off elsewhere, in a state that still has a value; never together with terminated"""
    final_obs: NDArray[Any]
    """[N, *obs] the observation that the action led to, also at an episode's end"""
    life_lost: NDArray[np.bool_]
    """[N] a life was lost but the game goes on; never where there are no lives"""


class Envs(Protocol):
    """N environments side by side with same-step reset: each step is one record, none is a mere reset."""

    num_envs: int
    obs_space: gym.Space[Any]
    """of one environment: vectors, or images of three dimensions"""
    action_space: gym.Space[Any]
    """of one environment; a Box shows the true bounds, to which actions are clipped here and nowhere else"""

    def reset(self, seeds: Sequence[int]) -> NDArray[Any]:
        """Start N episodes, environment i with seeds[i]; returns observations [N, *obs]."""

    def step(self, actions: NDArray[Any]) -> Step:
        """Take actions [N, *act]; an environment whose episode ends starts its next one within the same step."""

    def close(self) -> None:
        """Close all environments."""


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
    from algos.envs.envpool import EnvPoolVectorEnv

    return EnvPoolVectorEnv(env_id, num_envs, kwargs)


class VectorEnv:
    """The reference backend: Gymnasium environments, stepped one after the other (see `Envs`)."""

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


def make_env(env_id: str, kwargs: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """One environment as the agents see it.

    Its observation is an array: integers become one-hot, matrices are flattened, MiniGrid's dict becomes its 7×7×3
    image, Atari's screen the last four frames [4, 84, 84]. Continuous actions are clipped to their bounds.

    Raises:
        UsageError: unknown id or options, an observation that no agent here takes, or a package that is missing.
    """
    require_extra(env_id)
    options = dict(kwargs or {})
    make = make_atari if env_id.startswith("ALE/") else make_highway if env_id.startswith("highway-") else make_plain
    try:
        env = make(env_id, options)
    except (gym.error.Error, ImportError, TypeError, ValueError) as error:
        raise UsageError(f"can't make environment {env_id!r} with options {options}: {error}") from error
    if isinstance(env.observation_space, Dict) and "image" in env.observation_space.spaces:
        from minigrid.wrappers import ImgObsWrapper

        env = ImgObsWrapper(env)
    if isinstance(env.observation_space, Discrete) or len(env.observation_space.shape or ()) == 2:
        env = gym.wrappers.FlattenObservation(env)
    if not isinstance(env.observation_space, Box):
        raise UsageError(f"environment {env_id!r} observes {env.observation_space}; agents here take arrays (Box)")
    if isinstance(space := env.action_space, Box):
        # Not gymnasium's ClipAction: it would hide the bounds from the agent.
        env = gym.wrappers.TransformAction(env, lambda action: np.clip(action, space.low, space.high), space)
    return env


def make_plain(env_id: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """An environment that needs nothing special."""
    import minigrid  # noqa: F401  registers the MiniGrid ids

    return gym.make(env_id, disable_env_checker=True, **options)


def make_highway(env_id: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """A driving environment; its options are the entries of highway-env's config, which ignores unknown ones."""
    import highway_env  # noqa: F401  registers the ids

    env = gym.make(env_id, disable_env_checker=True, config=options)
    unknown = sorted(set(options) - set(type(env.unwrapped).default_config()))  # type: ignore[attr-defined]
    if unknown:
        raise TypeError(f"its config has no {unknown[0]!r}")
    return env


def make_atari(env_id: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """An Atari game as in Machado et al. 2018 (arXiv 1709.06009), but without sticky actions unless asked for.

    Four emulator frames a step, of which the last two are pooled; a random start; a game lasts until all lives are
    lost. Rewards are not clipped.
    """
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gym.register_envs(ale_py)
    if "frameskip" in options:
        raise TypeError("the frame skip is always 4 here")
    # The emulator must not skip frames of its own: the two skips would multiply.
    options = {"repeat_action_probability": 0.0, "frameskip": 1} | options
    env: gym.Env[Any, Any] = gym.make(env_id, disable_env_checker=True, **options)
    env = gym.wrappers.AtariPreprocessing(
        RandomStart(env), noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False
    )
    return gym.wrappers.FrameStackObservation(env, 4)


class RandomStart(gym.Wrapper[Any, Any, Any, Any]):
    """Starts a game after 1 to 30 frames without input, the last with FIRE where the game has it, as EnvPool does."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The state after those frames; their number comes from the environment's own generator."""
        self.env.reset(seed=seed, options=options)
        game: Any = self.env.unwrapped
        meanings = game.get_action_meanings()
        frames = int(game.np_random.integers(1, 31))
        for _ in range(frames - 1):
            self.env.step(meanings.index("NOOP"))
        obs, _, _, _, info = self.env.step(meanings.index("FIRE" if "FIRE" in meanings else "NOOP"))
        return obs, info


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
