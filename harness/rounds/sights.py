"""What does a record show? What its environment is in before the action, and that in words."""

import pickle
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text import FrozenLakeEnv
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from harness.rounds.snapshots import Snapshot, TakeSnapshot, can_copy
from harness.rounds.training import See
from harness.tasks.task import Task

ARROWS = ("←", "↓", "→", "↑")
LANDER_ACTIONS = ("nothing", "left engine", "main engine", "right engine")
GRID_ACTIONS = ("left", "right", "forward", "pick up", "drop", "toggle", "done")
FRAME_STEP = 4
"""every so many pixels of a rendered frame are kept"""
RENDERED = ("LunarLander", "BipedalWalker", "CarRacing")
"""environments whose frame is drawn while the rollout is played"""


@dataclass(frozen=True)
class Sight:
    """What is kept of an environment before each step."""

    snapshot: Snapshot | None
    """None where the environment can't be set to a state"""
    frame: NDArray[np.uint8] | None
    """[H, W, 3]; None where nothing is rendered"""


class LookAround(See):
    """Takes a snapshot where that is possible, and a small frame where the environment renders."""

    def __call__(self, env: gym.Env[Any, Any]) -> Sight:
        """What the environment is in before it acts."""
        frame = None
        if env.render_mode == "rgb_array":
            rendered: Any = env.render()
            frame = np.ascontiguousarray(rendered[::FRAME_STEP, ::FRAME_STEP])
        return Sight(TakeSnapshot()(env) if can_copy(env) else None, frame)


def rendering(task: Task) -> Task:
    """The task, its environments rendering where a frame is what shows most."""
    if not task.args.env_id.startswith(RENDERED):
        return task
    return replace(task, args=replace(task.args, env_kwargs=task.args.env_kwargs | {"render_mode": "rgb_array"}))


def action_name(env: gym.Env[Any, Any], action: NDArray[Any]) -> str:
    """An action in words."""
    bare: Any = env.unwrapped
    if isinstance(bare, FrozenLakeEnv):
        return ARROWS[int(action)]
    if isinstance(bare, MiniGridEnv) and int(action) < len(GRID_ACTIONS):
        return GRID_ACTIONS[int(action)]
    if type(bare).__name__ == "LunarLander" and action.ndim == 0:
        return LANDER_ACTIONS[int(action)]
    if hasattr(bare, "get_action_meanings"):
        return str(bare.get_action_meanings()[int(action)]).lower()
    return str(int(action)) if action.ndim == 0 else np.array2string(action, precision=2, separator=", ")


def in_words(env: gym.Env[Any, Any], sight: Sight, obs: NDArray[Any]) -> list[str]:
    """The record as lines of text: the grid, or the numbers of the observation."""
    bare: Any = env.unwrapped
    if isinstance(bare, FrozenLakeEnv) and sight.snapshot is not None:
        return lake_in_words(bare, pickle.loads(sight.snapshot.state)["s"])
    if isinstance(bare, MiniGridEnv) and sight.snapshot is not None:
        return grid_in_words(pickle.loads(sight.snapshot.state))
    if obs.ndim == 1:
        return [np.array2string(obs, precision=3, separator=", ", suppress_small=True, max_line_width=100)]
    return [f"image of shape {list(obs.shape)}"]


def lake_in_words(bare: Any, state: int) -> list[str]:
    """The map of FrozenLake with the agent's field in brackets."""
    rows = [[f" {letter.decode()} " for letter in row] for row in bare.desc]
    row, column = divmod(state, bare.ncol)
    rows[row][column] = f"[{rows[row][column].strip()}]"
    return ["".join(fields) for fields in rows]


def grid_in_words(state: dict[str, Any]) -> list[str]:
    """The grid of a MiniGrid: # wall, > v < ^ the agent, else the first letter of what lies there."""
    grid, (x, y) = state["grid"], state["agent_pos"]
    lines = []
    for j in range(grid.height):
        cells = [grid.get(i, j) for i in range(grid.width)]
        letters = ["." if cell is None else "#" if cell.type == "wall" else cell.type[0].upper() for cell in cells]
        if j == int(y):
            letters[int(x)] = ">v<^"[int(state["agent_dir"])]
        lines.append(" ".join(letters))
    return [*lines, f"step {state['step_count']} of {state['max_steps']}"]
