"""What do rules without any gradient achieve, on TD errors, advantages and rewards?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from filters.api import Filter, Objective, Rollout, Selection, Unit, check_fractions
from filters.registry import register


@register("td-error")
@dataclass(frozen=True, kw_only=True)
class TDError(Filter):
    """Prioritised by TD error.

    Keeps: n − floor(fraction · n) records, drawn without replacement with probability ∝ (1 / rank of |δ|)^exponent.
    Why: surprising transitions are said to teach most.
    Cost: a sort.
    Reference: the TD-error baseline of Hu et al., arXiv 2505.19281, after Schaul et al., arXiv 1511.05952 (rank-based).

    The original draws with replacement, which weights records by how often they come. Here each record comes once or
    not at all, so that the baseline differs from the filters in nothing but the choice of records.
    """

    fraction: float = 0.125
    """share of the records that go, in [0, 1]"""
    exponent: float = 0.6
    """how much the rank counts; 0 draws uniformly"""

    def __post_init__(self) -> None:
        check_fractions(fraction=self.fraction)
        if not 0 <= self.exponent < float("inf"):
            raise ValueError(f"exponent must be 0 or more, got {self.exponent}")

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Draw by the Gumbel-top-k trick, which is sampling without replacement."""
        rank = rank_of(-rollout.td_errors.abs()) + 1
        log_weight = -self.exponent * rank.to(rollout.td_errors.dtype).log()
        noise = torch.empty_like(log_weight).exponential_(generator=rollout.generator)
        return keep_highest(log_weight - noise.log(), rollout.n - int(self.fraction * rollout.n))


@register("advantage")
@dataclass(frozen=True, kw_only=True)
class SmallAdvantage(Filter):
    """Small advantages out.

    Keeps: all but the floor(fraction · n) records with the smallest |Â|.
    Why: a record without advantage hardly moves the policy and only adds noise to the value loss and the normalisation.
    Cost: a sort.
    Reference: a common heuristic of sample selection; a baseline.
    """

    fraction: float = 0.125
    """share of the records that go, in [0, 1]"""

    def __post_init__(self) -> None:
        check_fractions(fraction=self.fraction)

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Keep the largest |Â|; of equal ones the earlier."""
        return keep_highest(rollout.advantages.abs(), rollout.n - int(self.fraction * rollout.n))


@register("advantage-error")
@dataclass(frozen=True, kw_only=True)
class AdvantageError(Filter):
    """Wrong advantages out, where states repeat.

    Keeps: all but the worst `fraction` of the records whose Â and Monte-Carlo advantage Ā differ in sign.
    Why: most records of negative influence have inaccurate advantage estimates.
    Cost: a pass over the rollout.
    Reference: heuristics 1 (largest |Ā − Â| go) and 2 (lowest Ā·Â go) of Hu et al., arXiv 2505.19281.

    Ā(s, a) is the mean discounted return of the rollout's visits of (s, a) minus that of its visits of s; a fragment
    cut by the rollout boundary or a time limit ends in the critic's value. A state that is seen once says nothing and
    its record stays, so on tasks without repeating states nothing is dropped.
    """

    fraction: float = 0.5
    """share of the records of differing sign that go, in [0, 1]"""
    heuristic: Literal[1, 2] = 1
    """1 drops the largest errors |Ā − Â|, 2 the lowest products Ā·Â"""

    def __post_init__(self) -> None:
        check_fractions(fraction=self.fraction)

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Drop the worst floor(fraction · m) of the m records whose signs differ."""
        mc = monte_carlo_advantages(rollout)
        badness = (mc - rollout.advantages).abs() if self.heuristic == 1 else -mc * rollout.advantages
        differ = mc * rollout.advantages < 0
        dropped = int(self.fraction * int(differ.sum()))
        return keep_highest(torch.where(differ, -badness, torch.inf), rollout.n - dropped)


@register("reward")
@dataclass(frozen=True, kw_only=True)
class Reward(Filter):
    """Extreme rewards out.

    Keeps: records: all but the floor(fraction · n / 2) highest and lowest rewards; trajectories: all but the
        floor(fraction · U) lowest returns.
    Why: too easy and too hard records are said to teach little; failed episodes are said to mislead.
    Cost: a sort.
    Reference: the reward and difficulty baselines of Hu et al., arXiv 2505.19281, and Jia et al., arXiv 2609.35072.

    Equal rewards are ordered at random.
    """

    fraction: float = 0.125
    """share of the units that go, in [0, 1]"""
    unit: Unit = "record"
    """what goes: record or trajectory"""

    def __post_init__(self) -> None:
        check_fractions(fraction=self.fraction)

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Rank the units by reward, ties at random, and cut."""
        if self.unit == "record":
            each, rank = int(self.fraction * rollout.n / 2), shuffled_rank(rollout.rewards, rollout.generator)
            return Selection(keep=(rank >= each) & (rank < rollout.n - each))
        returns = rollout.rewards.new_zeros(rollout.num_trajectories)
        returns.index_add_(0, rollout.trajectory, rollout.rewards)
        rank = shuffled_rank(returns, rollout.generator)
        return Selection(keep=(rank >= int(self.fraction * returns.shape[0]))[rollout.trajectory])


def rank_of(values: Tensor) -> Tensor:
    """0-based ascending rank of each value [m]; of equal ones the earlier comes first."""
    rank = torch.empty_like(values, dtype=torch.int64)
    rank[values.argsort(stable=True)] = torch.arange(values.shape[0], device=values.device)
    return rank


def shuffled_rank(values: Tensor, generator: torch.Generator) -> Tensor:
    """0-based ascending rank of each value [m], equal ones in random order."""
    order = torch.randperm(values.shape[0], generator=generator, device=values.device)
    rank = torch.empty_like(order)
    rank[order] = rank_of(values[order])
    return rank


def keep_highest(priority: Tensor, count: int) -> Selection:
    """Keep the `count` records of the highest priority [n], of equal ones the earlier."""
    return Selection(keep=rank_of(-priority) < count, scores=priority)


def monte_carlo_advantages(rollout: Rollout) -> Tensor:
    """Ā [n]: mean return of the visits of (s, a) minus mean return of the visits of s, within this rollout."""
    returns = discounted_returns(rollout)
    states = rollout.obs.flatten(1).unique(dim=0, return_inverse=True)[1]
    actions = rollout.actions.reshape(rollout.n, -1).unique(dim=0, return_inverse=True)[1]
    return _mean_within(returns, states * rollout.n + actions) - _mean_within(returns, states)


def _mean_within(values: Tensor, group: Tensor) -> Tensor:
    """For every value the mean of its group [n]; exact for groups of one."""
    group = group.unique(return_inverse=True)[1]
    count = group.bincount()
    means = values.new_zeros(count.shape[0]).index_add_(0, group, values) / count
    return means[group]


def discounted_returns(rollout: Rollout) -> Tensor:
    """G_t = r_t + γ G_{t+1} within every trajectory fragment [n], the last record closing with δ + V = r + γ V(s')."""
    order = rollout.trajectory.argsort(stable=True).cpu()
    trajectory = rollout.trajectory.cpu()[order].numpy()
    rewards, closing = (x.cpu()[order].double().numpy() for x in (rollout.rewards, rollout.td_errors + rollout.values))
    returns = np.empty_like(rewards)
    for i in reversed(range(len(returns))):
        last = i + 1 == len(returns) or trajectory[i + 1] != trajectory[i]
        returns[i] = closing[i] if last else rewards[i] + rollout.gamma * returns[i + 1]
    flat = torch.empty(rollout.n, dtype=rollout.rewards.dtype)
    flat[order] = torch.as_tensor(returns, dtype=flat.dtype)
    return flat.to(rollout.rewards.device)
