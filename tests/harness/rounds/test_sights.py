"""What a record shows, in words."""

import numpy as np

from algos.envs.single import make_env
from harness.rounds.sights import LookAround, in_words, rendering
from harness.tasks.catalogue import find_task


def test_what_a_record_shows_in_words() -> None:
    lake = make_env("FrozenLake-v1", {"is_slippery": False})
    obs, _ = lake.reset(seed=0)
    assert in_words(lake, LookAround()(lake), obs) == ["[S] F  F  F ", " F  H  F  H ", " F  F  F  H ", " H  F  F  G "]
    grid = make_env("MiniGrid-Empty-5x5-v0")
    obs, _ = grid.reset(seed=0)
    assert in_words(grid, LookAround()(grid), obs) == [
        "# # # # #",
        "# > . . #",
        "# . . . #",
        "# . . G #",
        "# # # # #",
        "step 0 of 100",
    ]
    pole = make_env("CartPole-v1")
    obs = np.array([0.5, 0, 0, -1], np.float32)
    pole.reset(seed=0)
    assert in_words(pole, LookAround()(pole), obs) == ["[ 0.5,  0. ,  0. , -1. ]"]


def test_only_environments_whose_frame_says_most_render() -> None:
    assert rendering(find_task("LunarLander")).args.env_kwargs["render_mode"] == "rgb_array"
    lake = find_task("FrozenLake")
    assert rendering(lake).args == lake.args
