"""Does an environment do what Gymnasium asks of it? Every reset and step is looked at; trouble is one sentence."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from filters.errors import TrainingError

OLD_API = "which is the interface before Gymnasium 0.26; wrap it in shimmy's GymV21CompatibilityV0"


class Checked(gym.Wrapper[Any, Any, Any, Any]):
    """Hands on what the environment answers if it is sound.

    A reward that is an array of one number becomes that number. Everything else that is not what the spaces declare (a
    wrong shape or dtype, None, NaN, infinity), an exception and the old interface raise TrainingError with the
    environment's name, the step of the episode and what to do.
    """

    def __init__(self, env: gym.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self.name, self.steps = name, 0
        space = env.observation_space
        self.space = space if isinstance(space, Box) else None
        self.floats = self.space is not None and np.issubdtype(self.space.dtype, np.floating)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        self.steps = 0
        try:
            answer = self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise self.raised("reset", error) from error
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
            raise self.trouble("returned no pair of observation and info from reset", OLD_API)
        self.look(answer[0], "reset")
        return answer

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        self.steps += 1
        try:
            answer = self.env.step(action)
        except Exception as error:
            if isinstance(error, ValueError) and "values to unpack" in str(error):
                raise self.trouble("returned four values from step instead of five", OLD_API) from error
            raise self.raised("step", error) from error
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise self.trouble("returned no five values from step", OLD_API)
        obs, reward, terminated, truncated, info = answer
        self.look(obs, "step")
        return obs, self.paid(reward), bool(terminated), bool(truncated), info

    def look(self, obs: Any, where: str) -> None:
        """Raise TrainingError unless an observation is what the space declares."""
        if self.space is None:
            return
        if obs is None:
            raise self.trouble(f"observed None in {where}", "return an observation of its observation space")
        seen = np.asarray(obs)
        if seen.shape != self.space.shape:
            raise self.trouble(
                f"observed an array of shape {seen.shape} in {where} but declares {self.space.shape}", "make them agree"
            )
        if seen.dtype != self.space.dtype and not np.can_cast(seen.dtype, self.space.dtype, "same_kind"):
            raise self.trouble(f"observed {seen.dtype} in {where} but declares {self.space.dtype}", "make them agree")
        if self.floats and not np.isfinite(seen).all():
            raise self.trouble(f"observed NaN or infinity in {where}", "mend its observations, or clip them")

    def paid(self, reward: Any) -> float:
        """The reward as a number; raises TrainingError unless it is a finite one."""
        if isinstance(reward, np.ndarray) and reward.size == 1:
            reward = reward.item()
        if isinstance(reward, np.ndarray) or not isinstance(reward, int | float | np.number | np.bool_):
            what = f"an array of shape {reward.shape}" if isinstance(reward, np.ndarray) else repr(reward)[:40]
            raise self.trouble(f"paid {what}", "a reward has to be one number")
        if not np.isfinite(reward):
            raise self.trouble(f"paid {reward}", "mend its rewards, or clip them")
        return float(reward)

    def raised(self, where: str, error: Exception) -> TrainingError:
        """The sentence for an exception inside the environment."""
        return self.trouble(f"raised {type(error).__name__} in {where} ({error})", "mend the environment")

    def trouble(self, what: str, cure: str) -> TrainingError:
        """The sentence for whatever is wrong."""
        return TrainingError(f"environment {self.name!r} {what}, step {self.steps} of an episode: {cure}")
