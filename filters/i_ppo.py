"""Which trajectories' policy gradients work against the return that the rollout promises?"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from filters.api import Objective, Rollout, ScoreFilter, Unit
from filters.gradients.influence import dots, gradient, mean_by_unit
from filters.registry import register


@register("i-ppo")
@dataclass(frozen=True, kw_only=True)
class IPPO(ScoreFilter):
    """Influence of whole trajectories.

    Keeps: the trajectories whose gradient agrees with the gradient of f_return; zero goes.
    Why: as IIF, for whole episodes: an episode that is anti-aligned with the reference gradient harms as a whole.
    Cost: one gradient of f_return and one Jacobian-vector product a round.
    Reference: after Shu et al. 2026, arXiv 2604.01597; the validation gradient here is the rollout's own f_return.
    """

    unit: ClassVar[Unit] = "trajectory"

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        """⟨∇f_return, −g_j⟩ [U], g_j the gradient of the mean policy loss over trajectory j."""
        influence = dots(objective.per_record, objective.params, gradient(objective.target, objective.params))
        return mean_by_unit(influence, rollout.trajectory, rollout.num_trajectories)

    def drop(self, scores: Tensor) -> Tensor:
        """True where the score is not positive."""
        return scores <= 0
