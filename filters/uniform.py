"""What does training on fewer records do by itself, whichever records go?"""

from dataclasses import dataclass

import torch

from filters.api import Filter, Objective, Rollout, Selection, keep_all
from filters.registry import register


@register("random")
@dataclass(frozen=True, kw_only=True)
class RandomFilter(Filter):
    """Drops records blindly.

    Keeps: all but floor(fraction · n) records, drawn without replacement.
    Why: the control for every filter: a filter that does no better only trains on less.
    Cost: nothing.
    Reference: the random baseline of Hu et al., arXiv 2505.19281.
    """

    fraction: float = 0.125
    """share of the records that go, in [0, 1]"""

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction must lie in [0, 1], got {self.fraction}")

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Drop the first floor(fraction · n) of a random order."""
        keep = keep_all(rollout).keep
        order = torch.randperm(rollout.n, generator=rollout.generator, device=keep.device)
        keep[order[: int(self.fraction * rollout.n)]] = False
        return Selection(keep=keep)
