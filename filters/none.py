"""What does PPO do without a filter? The baseline."""

from dataclasses import dataclass

from filters.api import Filter, Objective, Rollout, Selection, keep_all
from filters.registry import register


@register("none")
@dataclass(frozen=True, kw_only=True)
class NoFilter(Filter):
    """The baseline: plain PPO.

    Keeps: every record.
    Why: what every filter has to beat.
    Cost: nothing.
    Reference: Schulman et al., "Proximal Policy Optimization Algorithms", arXiv 1707.06347.
    """

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Keep everything."""
        return keep_all(rollout)
