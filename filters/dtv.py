"""Which trajectories' gradients disagree with the rest of the round? No target function and no validation set."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import torch
from torch import Tensor

from filters.api import Apply, Objective, Rollout, Scored, ScoreFilter, Unit, check_fractions
from filters.gradients.influence import Alignment, align_units
from filters.registry import register


@dataclass(frozen=True, kw_only=True)
class TrajectoryValuation(ScoreFilter):
    """What the DTV family shares: trajectory units, their self- and cross-terms, and the threshold zero.

    g_j is the gradient of the mean PPO policy loss over trajectory j, b the number of trajectories whose gradient is
    finite. Self-term s_j = ‖g_j‖²/b, cross-term c_j = (1/b) Σ_{i≠j} ⟨g_i, g_j⟩; both are in the selection's terms.
    """

    apply: ClassVar[Apply] = "mask"
    unit: ClassVar[Unit] = "trajectory"

    min_keep: float = 0.0
    """share of the trajectories that stay in any case, the best ones, in [0, 1]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions(min_keep=self.min_keep)

    def combine(self, self_term: Tensor, cross_term: Tensor, b: int) -> Tensor:
        """Scores [U] from the terms [U]."""
        raise NotImplementedError

    def score(self, rollout: Rollout, objective: Objective) -> Scored:
        """Scores [U] with the terms `self` and `cross` [U]; -inf and NaN where the gradient is not finite."""
        alignment = align_units(objective.per_record, objective.params, rollout.trajectory)
        self_term, cross_term = terms(alignment)
        scores = self.combine(self_term, cross_term, alignment.b)
        return Scored(scores.where(alignment.finite, -torch.inf), {"self": self_term, "cross": cross_term})

    def drop(self, scores: Tensor) -> Tensor:
        """True for the negative scores, but never for the best ceil(min_keep · units)."""
        safe = scores.argsort(descending=True, stable=True)[: ceil(self.min_keep * scores.shape[0])]
        negative = scores < 0
        negative[safe] = False
        return negative


def terms(alignment: Alignment) -> tuple[Tensor, Tensor]:
    """Self-terms and cross-terms [U] of the unit gradients."""
    self_term = alignment.square_norm / max(alignment.b, 1)
    return self_term, alignment.dot - self_term


@register("dtv")
@dataclass(frozen=True, kw_only=True)
class DTV(TrajectoryValuation):
    """Dynamic trajectory valuation.

    Keeps: the trajectories whose gradient does not oppose the mean gradient of all, their own included.
    Why: an update against the batch's own direction undoes what the other trajectories teach; the conservative variant,
        as a long gradient protects its own trajectory.
    Cost: one forward and one backward pass, then three products a layer.
    Reference: Jia et al., "Not All Rollouts Are Worth Learning", arXiv 2609.35072.
    """

    def combine(self, self_term: Tensor, cross_term: Tensor, b: int) -> Tensor:
        """s_j + c_j = ⟨g_j, mean of all⟩."""
        return self_term + cross_term


@register("dtv-loo")
@dataclass(frozen=True, kw_only=True)
class DTVLoo(TrajectoryValuation):
    """Dynamic trajectory valuation, leave one out: DTV without self-protection.

    Keeps: the trajectories whose gradient does not oppose the mean gradient of the others.
    Why: a long gradient can keep a trajectory that disagrees with all others; without its own share it can't.
    Cost: as dtv.
    Reference: Jia et al., "Not All Rollouts Are Worth Learning", arXiv 2609.35072 (the authors' default).

    A single trajectory has no others to disagree with: its score is 0 and it stays.
    """

    def combine(self, self_term: Tensor, cross_term: Tensor, b: int) -> Tensor:
        """b/(b−1) · c_j = ⟨g_j, mean of the others⟩."""
        return cross_term * (b / (b - 1)) if b > 1 else torch.zeros_like(cross_term)


@register("dtv-lambda")
@dataclass(frozen=True, kw_only=True)
class DTVLambda(TrajectoryValuation):
    """Dynamic trajectory valuation with a weighted self-term.

    Keeps: the trajectories with λ s_j + c_j ≥ 0.
    Why: between dtv (λ = 1) and the sign of dtv-loo (λ = 0), to see how much self-protection matters.
    Cost: as dtv.
    Reference: Jia et al., "Not All Rollouts Are Worth Learning", arXiv 2609.35072.
    """

    lam: float = 0.5
    """λ, the weight of the self-term, in [0, 1]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions(lam=self.lam)

    def combine(self, self_term: Tensor, cross_term: Tensor, b: int) -> Tensor:
        """λ s_j + c_j."""
        return self.lam * self_term + cross_term
