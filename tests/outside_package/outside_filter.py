"""Do short trajectory fragments teach too little? A filter that another package brings along."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from filters.api import Objective, Rollout, ScoreFilter, Unit


@dataclass(frozen=True, kw_only=True)
class LongEpisodes(ScoreFilter):
    """Drops trajectories of fewer than `least` records, but never the longest."""

    unit: ClassVar[Unit] = "trajectory"

    least: int = 4

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        return rollout.trajectory.bincount().float()

    def drop(self, scores: Tensor) -> Tensor:
        return (scores < self.least) & (scores < scores.max())
