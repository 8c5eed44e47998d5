"""A corridor whose values are known in closed form, and which can be set to a state: for tests of played futures."""

from typing import Any

import gymnasium as gym
import numpy as np

LENGTH = 4
SLIP = 0.2


class Chain(gym.Env[Any, Any]):
    """Fields 0..3. Action 1 goes one field on, with probability 0.2 it stays; from field 3 it ends with reward 1.

    Action 0 ends the episode with nothing.
    """

    observation_space = gym.spaces.Discrete(LENGTH)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.field = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action == 0:
            return self.field, 0.0, True, False, {}
        if self.np_random.random() < SLIP:
            return self.field, 0.0, False, False, {}
        if self.field == LENGTH - 1:
            return self.field, 1.0, True, False, {}
        self.field += 1
        return self.field, 0.0, False, False, {}

    def get_state(self) -> int:
        return self.field

    def set_state(self, state: int) -> None:
        self.field = state


def closed_form(right: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """V [4] and Q [4, 2] of the policy that takes action 1 with probabilities `right` [4].

    Q(s, 1) = (1 − slip) X + slip γ V(s) with X = 1 at the end, else γ V(s + 1); Q(s, 0) = 0 and V(s) = π(1|s) Q(s, 1).
    Solved for V(s): V(s) = π (1 − slip) X / (1 − π slip γ).
    """
    V, Q = np.zeros(LENGTH), np.zeros((LENGTH, 2))
    for s in reversed(range(LENGTH)):
        ahead = 1.0 if s == LENGTH - 1 else gamma * V[s + 1]
        V[s] = right[s] * (1 - SLIP) * ahead / (1 - right[s] * SLIP * gamma)
        Q[s, 1] = (1 - SLIP) * ahead + SLIP * gamma * V[s]
    return V, Q


gym.register("FilterGymChain-v0", Chain, max_episode_steps=1000)
gym.register("FilterGymShortChain-v0", Chain, max_episode_steps=5)
