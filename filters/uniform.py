"""What does training on fewer records do by itself, whichever records go?"""

from dataclasses import dataclass, field

import torch

from filters.api import (
    Apply,
    Filter,
    Objective,
    Rollout,
    Selection,
    Unit,
    ask,
    check_fractions,
)
from filters.iif import IIF
from filters.registry import register


@register("random")
@dataclass(frozen=True, kw_only=True)
class RandomFilter(Filter):
    """Drops records blindly.

    Keeps: all but floor(fraction · n) records, or floor(fraction · U) trajectories, drawn without replacement.
    Why: the control for every filter: one that does no better only trains on less.
    Cost: nothing.
    Reference: the random baseline of Hu et al., arXiv 2505.19281.
    """

    fraction: float = 0.125
    """share of the units that go, in [0, 1]"""
    unit: Unit = "record"
    """what is drawn: record or trajectory"""

    def __post_init__(self) -> None:
        check_fractions(fraction=self.fraction)

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Drop the first floor(fraction · units) of a random order."""
        units = rollout.n if self.unit == "record" else rollout.num_trajectories
        keep = keep_random(rollout, units=units, dropped=int(self.fraction * units))
        return Selection(keep=keep if self.unit == "record" else keep[rollout.trajectory])


@register("random-matched")
@dataclass(frozen=True, kw_only=True)
class RandomMatched(Filter):
    """Drops as many records as another filter would have dropped in that round, but drawn at random.

    Keeps: all but k random records, k being the number that the filter `of` would drop.
    Why: the fair control: it makes as many optimizer steps, and only the choice of records differs.
    Cost: that of the filter `of`.
    Reference: the random baseline of Hu et al., arXiv 2505.19281, matched round by round.
    """

    of: Filter = field(default_factory=IIF, metadata={"spec": "iif"})
    """the filter that is matched, as a spec with `;` for `,`"""

    def __post_init__(self) -> None:
        if isinstance(self.of, RandomMatched):
            raise ValueError("of must name another filter than random-matched itself")

    @property
    def apply(self) -> Apply:  # type: ignore[override]  # a class variable elsewhere; here it is the other filter's
        """As the other filter's selections are applied."""
        return self.of.apply

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Ask the other filter how many, then draw."""
        dropped = int((~ask(self.of, rollout, objective).keep).sum())
        return Selection(keep=keep_random(rollout, units=rollout.n, dropped=dropped))


def keep_random(rollout: Rollout, *, units: int, dropped: int) -> torch.Tensor:
    """[units] bool, False at `dropped` places drawn from the filter's own random stream."""
    device = rollout.advantages.device
    keep = torch.ones(units, dtype=torch.bool, device=device)
    keep[torch.randperm(units, generator=rollout.generator, device=device)[:dropped]] = False
    return keep
