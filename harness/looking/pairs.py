"""Which state and which action? What the command line names, read and found in a rollout."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from algos.envs.single import make_env
from filters.errors import UsageError
from harness.rounds.sights import in_words
from harness.rounds.training import Moment, Training
from harness.tasks.task import Task


@dataclass(frozen=True)
class Pair:
    """One action in one state, as they were said."""

    observation: str
    """the state: numbers, the number of a discrete state, or a file; empty with `pick`"""
    pick: int
    """the record of the first round's rollout whose state it is; -1 with `observation`"""
    action: int
    """the action; -1 with `pick`: that of the record"""


def check(pair: Pair, task: Task) -> None:
    """Raise UsageError unless the pair is one state and one action of this task."""
    if bool(pair.observation) == (pair.pick >= 0):
        raise UsageError("--target action needs a state: say either --observation and --action, or --pick a record")
    if pair.pick >= (n := task.args.batch_size):
        raise UsageError(f"--pick {pair.pick}: a rollout of this task has records 0..{n - 1}")
    env = make_env(task.args.env_id, task.args.env_kwargs)
    if pair.observation:
        read_observation(pair.observation, env)
    check_action(pair, env.action_space)
    env.close()


def check_action(pair: Pair, space: gym.Space[Any]) -> None:
    """Raise UsageError unless the pair's action is one of the space, or is left to the record."""
    if not isinstance(space, gym.spaces.Discrete):
        if pair.action >= 0 or pair.observation:
            raise UsageError("this task's actions are no numbered ones; use --pick, which takes state and action")
        return
    if not (pair.pick >= 0 and pair.action < 0) and not 0 <= pair.action < space.n:
        raise UsageError(f"--action must lie in 0..{int(space.n) - 1} on this task, got {pair.action}")


def read_observation(text: str, env: gym.Env[Any, Any]) -> NDArray[Any]:
    """The observation [*obs] that the text or the file means.

    Raises:
        UsageError: not numbers, or not of the environment's shape.
    """
    space = env.observation_space
    shape = space.shape or ()
    bare = env.unwrapped.observation_space
    numbers = _read_numbers(text)
    if isinstance(bare, gym.spaces.Discrete) and numbers.size == 1:
        state = int(numbers.ravel()[0])
        if not 0 <= state < bare.n:
            raise UsageError(f"--observation {text}: the states of this task are 0..{int(bare.n) - 1}")
        numbers = np.eye(int(bare.n))[state]
    if numbers.shape != shape:
        raise UsageError(
            f"--observation has shape {list(numbers.shape)}, this task observes {list(shape)}; "
            + ("give as many numbers" if len(shape) == 1 else "give a .npy or .json file of that shape")
        )
    return numbers.astype(space.dtype)


def _read_numbers(text: str) -> NDArray[Any]:
    try:
        if text.endswith(".npy"):
            return np.asarray(np.load(text), np.float64)
        if text.endswith(".json"):
            return np.asarray(json.loads(Path(text).read_text(encoding="utf-8")), np.float64)
        return np.array([float(word) for word in text.split(",")])
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--observation {text!r} can't be read as numbers ({error}); give 0.1,0.2,… or a .npy or .json file"
        ) from error


def find(pair: Pair, training: Training, moment: Moment) -> tuple[Tensor, Tensor]:
    """State [1, *obs] and action [1, *act], as the network takes them; `moment` is the first round."""
    rollout = moment.rollout
    if pair.pick >= 0:
        obs, action = rollout.obs[pair.pick : pair.pick + 1], rollout.actions[pair.pick : pair.pick + 1]
        return obs, action if pair.action < 0 else torch.full_like(action, pair.action)
    given = read_observation(pair.observation, training.state.envs.envs.envs[0])
    obs = training.module.tensor(given[None], training.args.device)
    return obs, torch.full_like(rollout.actions[:1], pair.action)


def show_state(pair: Pair, env: gym.Env[Any, Any], first: Moment, obs: Tensor) -> list[str]:
    """The state [1, *obs] in words, as the first rollout saw it if it did."""
    same = (first.rollout.obs == obs).flatten(1).all(1).nonzero().flatten().tolist()
    array = obs[0].cpu().numpy()
    record = pair.pick if pair.pick >= 0 else same[0] if same else None
    if record is not None:
        return in_words(env, first.seen[record], array)
    return [np.array2string(array, precision=3, separator=", ", threshold=50)]
