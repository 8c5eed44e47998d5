"""What does a record look like? The grid, the frame or the numbers that the agent acted on, as a picture."""

import pickle
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.toy_text import FrozenLakeEnv
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray

from harness.drawing.figures import BLUE, ORANGE, SKY
from harness.rounds.sights import Sight

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAKE_COLOURS = {"S": "#FFFFFF", "F": "#FFFFFF", "H": SKY, "G": ORANGE}


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
