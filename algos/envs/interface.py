"""What do N environments side by side promise, whatever steps them?"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

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
