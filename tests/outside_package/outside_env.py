"""A corridor that FilterGym does not know: walk to its far end; registered with Gymnasium when this is imported."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray


class Corridor(gym.Env[NDArray[np.float32], np.int64]):
    """Left or right along `length` places; the reward of 1 is at the end, an episode lasts 50 steps at most."""

    def __init__(self, length: int = 6) -> None:
        self.length = length
        self.observation_space = gym.spaces.Box(0, 1, (length,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.at = self.steps = 0
        return self._seen(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self.at = min(max(self.at + (1 if action else -1), 0), self.length - 1)
        self.steps += 1
        over = self.at == self.length - 1
        return self._seen(), float(over), over, self.steps >= 50 and not over, {}

    def _seen(self) -> NDArray[np.float32]:
        return np.eye(self.length, dtype=np.float32)[self.at]


gym.register("outside/Corridor-v0", entry_point="outside_env:Corridor")
