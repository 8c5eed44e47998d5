"""Filters that break the contract, one way each."""

import random
import time
from dataclasses import dataclass

import torch
from torch import Tensor

from filters.api import Filter, Objective, Rollout, ScoreFilter, Selection, keep_all


@dataclass(frozen=True, kw_only=True)
class Raises(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        raise ZeroDivisionError("a bug in the filter")


@dataclass(frozen=True, kw_only=True)
class Hangs(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        time.sleep(3600)
        return keep_all(rollout)


@dataclass(frozen=True, kw_only=True)
class NaNScores(ScoreFilter):
    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        return rollout.advantages * torch.nan

    def drop(self, scores: Tensor) -> Tensor:
        return scores < 0


@dataclass(frozen=True, kw_only=True)
class WrongLength(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        return Selection(keep=torch.ones(rollout.n - 1, dtype=torch.bool))


@dataclass(frozen=True, kw_only=True)
class WrongScoreLength(ScoreFilter):
    unit = "trajectory"

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        return rollout.advantages

    def drop(self, scores: Tensor) -> Tensor:
        return scores < 0


@dataclass(frozen=True, kw_only=True)
class IntegerIndices(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        return Selection(keep=torch.arange(rollout.n // 2))


@dataclass(frozen=True, kw_only=True)
class NoSelection(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        return rollout.advantages > 0  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class ChangesInputs(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        rollout.advantages.sub_(rollout.advantages.mean())
        return keep_all(rollout)


@dataclass(frozen=True, kw_only=True)
class GlobalRandomness(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        random.random()
        return keep_all(rollout)


@dataclass(frozen=True, kw_only=True)
class Remembers(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        keep = keep_all(rollout).keep
        keep[len(CALLS) % rollout.n] = False
        CALLS.append(rollout.round)
        return Selection(keep=keep)


CALLS: list[int] = []


@dataclass(frozen=True, kw_only=True)
class KeepsNothing(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        return Selection(keep=~keep_all(rollout).keep)


@dataclass(frozen=True, kw_only=True)
class NeedsTwoTrajectories(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        if rollout.num_trajectories < 2:
            raise ValueError("nothing to compare")
        return keep_all(rollout)


@dataclass(frozen=True, kw_only=True)
class NeedsLongTrajectories(ScoreFilter):
    unit = "trajectory"

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        units = range(rollout.num_trajectories)
        return torch.stack([rollout.rewards[rollout.trajectory == unit].std() for unit in units])

    def drop(self, scores: Tensor) -> Tensor:
        return scores < 0


@dataclass(frozen=True, kw_only=True)
class DividesBySpread(ScoreFilter):
    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        return (rollout.advantages - rollout.advantages.mean()) / rollout.advantages.std()

    def drop(self, scores: Tensor) -> Tensor:
        return scores < -2


@dataclass(frozen=True, kw_only=True)
class TrustsTheLoss(ScoreFilter):
    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        losses = objective.per_record(objective.params)
        return losses - losses.mean()

    def drop(self, scores: Tensor) -> Tensor:
        return scores < -1


@dataclass(frozen=True, kw_only=True)
class KeepsCount(Filter):
    """Not broken: keeps the first `count` records of every round, or all but those of one round."""

    count: int = 1

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        return Selection(keep=torch.arange(rollout.n) < self.count)


@dataclass(frozen=True, kw_only=True)
class ScalesParameters(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        next(iter(objective.params.values())).data.mul_(1.01)
        return keep_all(rollout)


@dataclass(frozen=True, kw_only=True)
class KeepsNothingOnce(Filter):
    """Not broken: keeps nothing in round 1 and everything elsewhere."""

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        keep = keep_all(rollout).keep
        return Selection(keep=keep if rollout.round != 1 else ~keep)


class NotAFilter:
    pass
