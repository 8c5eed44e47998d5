"""What does a record show? The grid, the frame or the numbers that the agent acted on, as a picture and in words."""

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text import FrozenLakeEnv
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from harness.drawing.figures import BLUE, ORANGE, SKY
from harness.looking.rounds import See
from harness.looking.snapshots import Snapshot, TakeSnapshot, can_copy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARROWS = ("←", "↓", "→", "↑")
LANDER_ACTIONS = ("nothing", "left engine", "main engine", "right engine")
GRID_ACTIONS = ("left", "right", "forward", "pick up", "drop", "toggle", "done")
LAKE_COLOURS = {"S": "#FFFFFF", "F": "#FFFFFF", "H": SKY, "G": ORANGE}
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


def render_options(env_id: str) -> dict[str, bool | int | float | str]:
    """Options that make an environment of this id draw its frames, where a frame is what shows most."""
    return {"render_mode": "rgb_array"} if env_id.startswith(RENDERED) else {}


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


def draw(panel: "Axes", env: gym.Env[Any, Any], sight: Sight, obs: NDArray[Any]) -> None:
    """Draw what the record shows."""
    bare: Any = env.unwrapped
    panel.grid(False)
    panel.set_xticks([])
    panel.set_yticks([])
    if isinstance(bare, FrozenLakeEnv) and sight.snapshot is not None:
        draw_lake(panel, bare, pickle.loads(sight.snapshot.state)["s"])
    elif isinstance(bare, MiniGridEnv) and sight.snapshot is not None:
        panel.imshow(grid_frame(bare, pickle.loads(sight.snapshot.state)))
    elif sight.frame is not None:
        panel.imshow(sight.frame)
    elif obs.ndim == 3:
        panel.imshow(image_of(obs), cmap="gray")
    else:
        panel.barh(np.arange(len(obs)), obs, color=BLUE)
        panel.axvline(0, color="black", linewidth=0.8)
        panel.set_yticks(np.arange(len(obs)), [f"{i}" for i in range(len(obs))], fontsize=8)
        panel.set_xticks([float(obs.min()), float(obs.max())], [f"{v:.2f}" for v in (obs.min(), obs.max())], fontsize=8)


def draw_lake(panel: "Axes", bare: Any, state: int) -> None:
    """The map of FrozenLake, a disc where the agent stands."""
    for (row, column), letter in np.ndenumerate(bare.desc):
        colour = LAKE_COLOURS[letter.decode()]
        panel.fill(
            [column, column + 1, column + 1, column], [row, row, row + 1, row + 1], facecolor=colour, ec="#999999"
        )
        panel.text(column + 0.5, row + 0.5, letter.decode(), ha="center", va="center", fontsize=9, color="#333333")
    row, column = divmod(state, bare.ncol)
    panel.plot(column + 0.5, row + 0.5, "o", markersize=17, markerfacecolor="none", markeredgewidth=3, color=BLUE)
    panel.set_xlim(0, bare.ncol)
    panel.set_ylim(bare.nrow, 0)
    panel.set_aspect("equal")


def grid_frame(bare: Any, state: dict[str, Any]) -> NDArray[np.uint8]:
    """MiniGrid's own picture [H, W, 3] of a state."""
    agent = tuple(int(x) for x in state["agent_pos"])
    frame: NDArray[np.uint8] = state["grid"].render(16, agent, int(state["agent_dir"]))
    return frame


def image_of(obs: NDArray[Any]) -> NDArray[Any]:
    """The newest of stacked frames [C, H, W], or of an image [H, W, C] its first channel."""
    return obs[-1] if obs.shape[0] < obs.shape[2] else obs[..., 0]
