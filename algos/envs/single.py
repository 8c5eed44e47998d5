"""How is one Gymnasium environment made, as the agents see it?"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from algos.envs.checked import Checked
from algos.envs.extras import require_extra
from filters.errors import UsageError

PREFIX = " If a package of yours registers it, write the id behind the package's name: my_package:my/Env-v0"


def make_env(env_id: str, kwargs: Mapping[str, Any] | None = None) -> gym.Env[Any, Any]:
    """One environment as the agents see it.

    Its observation is an array: integers become one-hot, matrices, dicts and tuples are flattened by Gymnasium's own
    wrapper, MiniGrid's dict becomes its 7×7×3 image, Atari's screen the last four frames [4, 84, 84]. Continuous
    actions are clipped to their bounds, and rounded where the environment takes whole numbers; numbered actions begin
    at 0 here, whatever they begin at there.

    Raises:
        UsageError: unknown id or options, an observation that no agent here takes, or a package that is missing.
    """
    require_extra(env_id)
    options = dict(kwargs or {})
    make = make_atari if env_id.startswith("ALE/") else make_highway if env_id.startswith("highway-") else make_plain
    try:
        env = make(env_id, options)
    except (gym.error.Error, ImportError, TypeError, ValueError) as error:
        hint = "" if ":" in env_id or not isinstance(error, gym.error.Error) else PREFIX
        raise UsageError(f"can't make environment {env_id!r} with options {options}: {error}{hint}") from error
    if isinstance(env.observation_space, Dict) and "image" in env.observation_space.spaces:
        from minigrid.wrappers import ImgObsWrapper

        env = ImgObsWrapper(env)
    flat = isinstance(env.observation_space, Discrete | Dict | Tuple)
    if flat or len(env.observation_space.shape or ()) == 2:
        env = gym.wrappers.FlattenObservation(env)
    if not isinstance(env.observation_space, Box):
        raise UsageError(f"environment {env_id!r} observes {env.observation_space}; agents here take arrays (Box)")
    return with_actions(env)


def with_actions(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment with actions as agents choose them: numbers from 0 on, or floats within bounds."""
    space: Any = env.action_space
    if isinstance(space, Discrete) and space.start != 0:
        first = space.start
        return gym.wrappers.TransformAction(env, lambda action: action + first, Discrete(int(space.n)))
    if isinstance(space, Box) and not np.issubdtype(space.dtype, np.floating):
        seen = Box(space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32)
        return gym.wrappers.TransformAction(
            env, lambda action: np.clip(np.rint(action), space.low, space.high).astype(space.dtype), seen
        )
    if isinstance(space, Box):
        # Not gymnasium's ClipAction: it would hide the bounds from the agent.
        return gym.wrappers.TransformAction(env, lambda action: np.clip(action, space.low, space.high), space)
    return env


def make_plain(env_id: str, options: dict[str, Any]) -> gym.Env[Any, Any]:
    """An environment that needs nothing special."""
    import minigrid  # noqa: F401  registers the MiniGrid ids

    return Checked(gym.make(env_id, disable_env_checker=True, **options), env_id)


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
