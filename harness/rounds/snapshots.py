"""How is an environment's state copied, and put into another environment, so that its future can be played again?"""

import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)
from gymnasium.envs.toy_text import CliffWalkingEnv, FrozenLakeEnv, TaxiEnv
from gymnasium.wrappers import TimeLimit
from minigrid.minigrid_env import MiniGridEnv

from filters.errors import UsageError
from harness.rounds.training import See

ATTRIBUTES: dict[type[gym.Env[Any, Any]], tuple[str, ...]] = {
    FrozenLakeEnv: ("s",),
    CliffWalkingEnv: ("s",),
    TaxiEnv: ("s",),
    CartPoleEnv: ("state", "steps_beyond_terminated"),
    AcrobotEnv: ("state",),
    MountainCarEnv: ("state",),
    Continuous_MountainCarEnv: ("state",),
    PendulumEnv: ("state", "last_u"),
}
"""what makes up the state of the environments that keep it in a few attributes"""

GRID_FIXTURES = {"window", "clock", "spec", "actions", "action_space", "observation_space", "_np_random"}
"""attributes of a MiniGrid environment that no step changes, and its random stream"""


class Snapshot(NamedTuple):
    """A state to go back to. The random stream is no part of it: every future is drawn anew."""

    state: bytes
    """of the environment itself; equal states have equal bytes"""
    elapsed: tuple[int, ...]
    """steps that each time limit around it has counted, from the outside in"""


class TakeSnapshot(See):
    """Takes a snapshot of the environment."""

    def __call__(self, env: gym.Env[Any, Any]) -> Snapshot:
        """The snapshot; about 40 microseconds for a MiniGrid."""
        elapsed = tuple(limit._elapsed_steps or 0 for limit in limits(env))
        return Snapshot(pickle.dumps(read_state(env.unwrapped)), elapsed)


def can_copy(env: gym.Env[Any, Any]) -> bool:
    """Whether the environment can be set to a state."""
    bare = env.unwrapped
    return isinstance(bare, (*ATTRIBUTES, MiniGridEnv)) or (hasattr(bare, "get_state") and hasattr(bare, "set_state"))


def require_copy(env: gym.Env[Any, Any], task: str) -> None:
    """Raise UsageError unless the environment can be set to a state."""
    if not can_copy(env):
        raise UsageError(
            f"the environment of {task} can't be set to a state, so nothing can be continued from its records; "
            "leave out --advantages or take --advantages repeats"
        )


def restore(env: gym.Env[Any, Any], snapshot: Snapshot) -> None:
    """Put an environment of the same kind, which has been reset once, into the state of a snapshot."""
    write_state(env.unwrapped, pickle.loads(snapshot.state))
    for limit, elapsed in zip(limits(env), snapshot.elapsed, strict=True):
        limit._elapsed_steps = elapsed  # type: ignore[assignment]  # None only before the first reset


def read_state(bare: Any) -> Any:
    """The state of an unwrapped environment, to be copied before the next step.

    An environment of one's own takes part with `get_state()` and `set_state(state)`, the state being anything that
    pickle takes.
    """
    if isinstance(bare, MiniGridEnv):
        return {name: value for name, value in vars(bare).items() if name not in GRID_FIXTURES}
    names = next((names for cls, names in ATTRIBUTES.items() if isinstance(bare, cls)), None)
    if names is None:
        return bare.get_state()
    found = {name: getattr(bare, name) for name in names if hasattr(bare, name)}
    # Equal states have to have equal bytes, whichever type of integer a step left.
    return {name: int(value) if isinstance(value, np.integer) else value for name, value in found.items()}


def write_state(bare: Any, state: Any) -> None:
    """The inverse of `read_state`."""
    if isinstance(bare, (*ATTRIBUTES, MiniGridEnv)):
        vars(bare).update(state)
    else:
        bare.set_state(state)


def limits(env: gym.Env[Any, Any]) -> Iterator[TimeLimit[Any, Any]]:
    """The time limits among an environment's wrappers, from the outside in."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            yield env
        env = env.env
