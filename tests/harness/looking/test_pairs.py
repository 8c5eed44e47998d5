"""The state that the command line names, read."""

from pathlib import Path

import numpy as np
import pytest

from algos.envs.single import make_env
from filters.errors import UsageError
from harness.looking.pairs import read_observation


def test_observations_of_the_command_line(tmp_path: Path) -> None:
    lake, grid = make_env("FrozenLake-v1"), make_env("MiniGrid-Empty-5x5-v0")
    assert read_observation("3", lake).tolist() == np.eye(16)[3].tolist()
    assert read_observation(",".join(["0"] * 15 + ["1"]), lake).tolist() == np.eye(16)[15].tolist()
    np.save(tmp_path / "grid.npy", np.ones((7, 7, 3)))
    assert read_observation(str(tmp_path / "grid.npy"), grid).dtype == np.uint8
    with pytest.raises(UsageError, match=r"has shape \[3\], this task observes \[16\]; give as many numbers"):
        read_observation("1,2,3", lake)
    with pytest.raises(UsageError, match=r"has shape \[1\], this task observes \[7, 7, 3\]; give a \.npy"):
        read_observation("1", grid)
    with pytest.raises(UsageError, match=r"the states of this task are 0\.\.15"):
        read_observation("16", lake)
    for text in ("here", "absent.npy", "absent.json"):
        with pytest.raises(UsageError, match="can't be read as numbers"):
            read_observation(text, lake)
