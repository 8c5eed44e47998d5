"""Which records' policy gradients work against the return that this round's rollout promises?"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from filters.api import Objective, Params, Rollout, ScoreFilter, check_fractions
from filters.gradients.influence import dots, gradient
from filters.gradients.reference import load
from filters.registry import register


@register("iif")
@dataclass(frozen=True, kw_only=True)
class IIF(ScoreFilter):
    """Iterative influence-based filtering.

    Keeps: all but the lowest `fraction` of the records with negative influence ⟨∇f_return, −∇ℓ_i⟩.
    Why: a step along such a record's gradient lowers the return that the same rollout estimates.
    Cost: one gradient of f_return and one Jacobian-vector product a round, repaid by fewer optimizer steps.
    Reference: Hu et al., "A Snapshot of Influence", NeurIPS 2025, arXiv 2505.19281.

    f_return uses raw advantages, ℓ_i (the PPO policy loss at ratio 1) normalised ones. As in the authors' code the
    threshold is the score at index floor(fraction · number of negatives) in ascending order and strictly lower scores
    go, so records that tie with the threshold stay.

    f_return is an expectation over a reference policy's records: the rollout's own (dynamic, the default), or with
    `reference` a fixed set from a trained policy, which the authors show to be worse.
    """

    fraction: float = 0.125
    """p, the share of the records with negative influence that go, in [0, 1]"""
    reference: str | None = None
    """file of a fixed reference, from `python -m harness.reference`; none: the rollout's own records"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions(fraction=self.fraction)
        if self.reference is not None:
            load(self.reference)

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        """Influence of every record [n]: ⟨∇target, ∇ℓ_i⟩ with target = −f_return."""
        target = objective.target if self.reference is None else fixed_target(self.reference, rollout, objective)
        return dots(objective.per_record, objective.params, gradient(target, objective.params))

    def drop(self, scores: Tensor) -> Tensor:
        """True for the lowest floor(fraction · negatives) of the negative scores."""
        negatives = int((scores < 0).sum())
        ascending = torch.cat([scores.sort().values, scores.new_tensor([torch.inf])])
        threshold = ascending[int(self.fraction * negatives)].clamp(max=0) if negatives else 0.0
        return scores < threshold


def fixed_target(path: str, rollout: Rollout, objective: Objective) -> Callable[[Params], Tensor]:
    """−E_{(s,a) ~ π_ref}[log π_θ(a|s) · Â_ref(s,a)] over the records of a reference file."""
    reference = load(path)
    reference.check_fits(rollout, objective)
    device = rollout.advantages.device
    obs, actions, advantages = (x.to(device) for x in (reference.obs, reference.actions, reference.advantages))

    def target(params: Params) -> Tensor:
        return -(objective.logprob(params, obs, actions) * advantages).mean()

    return target
