"""A filter that cheats: it is told which records were made harmful. It shows what a perfect filter would reach."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from algos.training import corrupt
from filters.api import Filter, Objective, Rollout, Selection, keep_all

_made: list["Watched"] = []


class Watched(corrupt.Corrupted):
    """The corruption of a rollout, remembered."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        _made[:] = [self]


corrupt.Corrupted = Watched  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Oracle(Filter):
    """Keeps: exactly the records that were left alone."""

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Drop what was corrupted in the rollout that was made last."""
        marks: NDArray[np.bool_] = _made[0].marks.reshape(-1)
        keep = torch.as_tensor(~marks)
        return Selection(keep=keep, scores=keep.float()) if keep.any() else keep_all(rollout)
