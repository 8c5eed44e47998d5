"""What does a data filter see, what does it return, and what happens to its answer? The page filter authors read.

    rollout, objective ──▶ Filter.select ──▶ Selection.keep [n] ──▶ update on the kept records

Letters: T steps, N environments, n = T·N records, U trajectories. Record i of the flat rollout is step i // N of
environment i % N.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from filters.errors import FilterError
from filters.guard import Guard

Params = dict[str, Tensor]
Apply = Literal["repack", "mask"]
Unit = Literal["record", "trajectory"]


@dataclass(frozen=True)
class Rollout:
    """The records that an update is about to train on. A filter must not change them in place."""

    obs: Tensor
    """[n, *obs] as the agent's network takes them"""
    actions: Tensor
    """[n, *act] int64 for discrete actions"""
    logprobs: Tensor
    """[n] log π(a|s) of the policy that acted"""
    values: Tensor
    """[n] V(s) before the update"""
    rewards: Tensor
    """[n] rewards as the environment gave them"""
    advantages: Tensor
    """[n] GAE, not normalised"""
    returns: Tensor
    """[n] advantages + values, the target of the value loss"""
    td_errors: Tensor
    """[n] δ = r + γ V(s') − V(s), V(s') left out where the episode terminated"""
    trajectory: Tensor
    """[n] int64 in 0..U-1: the trajectory fragment of each record, cut at episode ends and at the rollout boundary"""
    gamma: float
    """discount factor"""
    round: int
    """0-based number of the collect-and-update cycle"""
    generator: torch.Generator
    """the filter's own random stream: draw from it and from nothing else"""

    @property
    def n(self) -> int:
        """Number of records."""
        return self.advantages.shape[0]

    @property
    def num_trajectories(self) -> int:
        """U, the number of trajectory fragments."""
        return int(self.trajectory.max()) + 1


@dataclass(frozen=True)
class Objective:
    """The agent's own loss as pure functions of its policy parameters; lazy, so what is not called costs nothing."""

    params: Params
    """the parameters that the policy depends on, detached, at the start of the round's update"""
    per_record: Callable[[Params], Tensor]
    """params -> [n]: the un-averaged PPO policy loss of every record, advantages normalised over the rollout"""
    target: Callable[[Params], Tensor]
    """params -> []: minus f_return = -mean(log π(a|s) · Â), raw advantages; what an update should lower"""
    logprob: Callable[[Params, Tensor, Tensor], Tensor]
    """(params, obs [m, *obs], actions [m, *act]) -> [m]: log π(a|s), of this rollout's records or of others"""


@dataclass(frozen=True)
class Selection:
    """A filter's answer."""

    keep: Tensor
    """[n] bool: True where the update may use the record"""
    scores: Tensor | None = None
    """[n] or [U], kept for diagnosis; higher is better. -inf marks what can't be scored; NaN is an error"""
    terms: Mapping[str, Tensor] = field(default_factory=dict)
    """parts that the scores are made of, each as long as they are; kept for diagnosis"""

    @property
    def unscorable(self) -> int:
        """How many units could not be scored, because their gradient is not finite."""
        return 0 if self.scores is None else int(self.scores.isneginf().sum())


class Scored(NamedTuple):
    """Scores together with the parts that they are made of."""

    scores: Tensor
    terms: Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Base of all filters: a frozen dataclass whose fields are its hyperparameters (`asdict` is what gets recorded).

    It keeps nothing from round to round: a run that goes on from a checkpoint makes its filter anew.
    """

    apply: ClassVar[Apply] = "repack"
    """`repack`: minibatches keep their size and there are fewer of them. `mask`: minibatches keep their place and
    dropped records leave the mean."""

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Say which records of this round the update may use."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ScoreFilter(Filter):
    """A filter made of independent parts: what is scored (`unit`), the method (`score`), the rule (`drop`)."""

    unit: ClassVar[Unit] = "record"

    warmup: int = 0
    """first rounds that pass unfiltered"""

    def __post_init__(self) -> None:
        if self.warmup < 0:
            raise ValueError(f"warmup must be 0 or more rounds, got {self.warmup}")

    def score(self, rollout: Rollout, objective: Objective) -> Tensor | Scored:
        """Score every unit: [n] for records, [U] for trajectories; higher is better, -inf drops a unit for certain."""
        raise NotImplementedError

    def drop(self, scores: Tensor) -> Tensor:
        """Turn the scores [m] of the units that could be scored, m ≥ 1, into a bool mask [m] of those that go."""
        raise NotImplementedError

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        """Score the units, drop by the rule, and map units back to records."""
        if rollout.round < self.warmup:
            return keep_all(rollout)
        answer = self.score(rollout, objective)
        scores, terms = answer if isinstance(answer, Scored) else (answer, {})
        check_scores(self, scores, rollout)
        keep = ~scores.isneginf()
        if bool(keep.any()):
            keep[keep.clone()] = ~self.drop(scores[keep])
        return Selection(keep=keep if self.unit == "record" else keep[rollout.trajectory], scores=scores, terms=terms)


def check_fractions(**fractions: float) -> None:
    """Raise ValueError unless every named fraction lies in [0, 1]."""
    for name, fraction in fractions.items():
        if not 0 <= fraction <= 1:
            raise ValueError(f"{name} must lie in [0, 1], got {fraction}")


def keep_all(rollout: Rollout) -> Selection:
    """The selection that keeps every record."""
    return Selection(keep=torch.ones(rollout.n, dtype=torch.bool, device=rollout.advantages.device))


def run_filter(filter: Filter, rollout: Rollout, objective: Objective, model: nn.Module | None = None) -> Selection:
    """Call `filter.select` and hold the answer against the contract.

    Args:
        filter: the filter.
        rollout: what it looks at.
        objective: the agent's loss, to look at.
        model: the agent, whose parameters the filter has to leave alone, however it got hold of them.

    Raises:
        FilterError: if it raises, changes the rollout, a parameter or a global random state, or answers with anything
            but a bool `keep` [n] and scores free of NaN.
    """
    columns = {name: value for name, value in vars(rollout).items() if isinstance(value, Tensor)}
    guard = Guard(columns | {f"params[{name!r}]": p for name, p in objective.params.items()}, model)
    selection = ask(filter, rollout, objective)
    if changed := guard.changed():
        raise FilterError(
            f"{name_of(filter)} in round {rollout.round} changed {', '.join(changed[:3])}; a filter only looks: clone "
            "before writing, and draw random numbers from rollout.generator"
        )
    return selection


def ask(filter: Filter, rollout: Rollout, objective: Objective) -> Selection:
    """The valid answer of `filter.select`; raises FilterError as `run_filter`, but looks at nothing else."""
    try:
        selection = filter.select(rollout, objective)
    except FilterError as error:
        raise FilterError(f"{error} (round {rollout.round})") from error
    except Exception as error:
        raise FilterError(
            f"{name_of(filter)} raised {type(error).__name__} in round {rollout.round}: {error}; "
            "the traceback is recorded with the run"
        ) from error
    check_selection(filter, selection, rollout)
    return selection


def check_selection(filter: Filter, selection: object, rollout: Rollout) -> None:
    """Raise a FilterError unless `selection` is a valid answer for this rollout."""
    where = f"{name_of(filter)} in round {rollout.round}"
    if not isinstance(selection, Selection):
        raise FilterError(f"{where} returned {type(selection).__name__}; select must return a Selection")
    keep = selection.keep
    if not isinstance(keep, Tensor) or keep.dtype != torch.bool:
        got = keep.dtype if isinstance(keep, Tensor) else type(keep).__name__
        raise FilterError(f"{where} returned keep as {got}; it must be a bool tensor, True where a record stays")
    if keep.shape != (rollout.n,):
        raise FilterError(
            f"{where} returned keep of shape {list(keep.shape)}; expected one entry a record, [{rollout.n}]"
        )
    if keep.device != rollout.advantages.device:
        raise FilterError(f"{where} returned keep on {keep.device}; the rollout is on {rollout.advantages.device}")
    if selection.scores is not None:
        check_scores(filter, selection.scores, rollout)


def check_scores(filter: Filter, scores: object, rollout: Rollout) -> None:
    """Raise a FilterError unless `scores` is a NaN-free tensor with one entry a record or one a trajectory."""
    where = f"{name_of(filter)} in round {rollout.round}"
    if not isinstance(scores, Tensor):
        raise FilterError(f"{where} returned scores as {type(scores).__name__}; they must be a tensor")
    unit = filter.unit if isinstance(filter, ScoreFilter) else None
    sizes = {"record": rollout.n, "trajectory": rollout.num_trajectories}
    allowed = [sizes[unit]] if unit else sorted(set(sizes.values()))
    if scores.dim() != 1 or scores.shape[0] not in allowed:
        expected = " or ".join(f"[{size}]" for size in allowed)
        raise FilterError(f"{where} returned scores of shape {list(scores.shape)}; expected {expected}")
    if bool(scores.isnan().any()):
        raise FilterError(
            f"{where} returned {int(scores.isnan().sum())} NaN scores of {scores.shape[0]}; "
            "mark a unit that can't be scored with -inf, it is then dropped"
        )


def name_of(filter: Filter) -> str:
    """How messages call a filter: its class and fields, as in `filter IIF(warmup=0, fraction=0.125)`."""
    return f"filter {filter!r}"


def minibatches(order: Tensor, keep: Tensor, size: int, apply: Apply) -> list[Tensor]:
    """Split one epoch's permutation of all records into the minibatches of the records that are kept.

    `order` [n] is drawn over *all* records and the dropped ones are left out afterwards, so every filter sees the
    same order. `repack` fills minibatches of `size` with kept records; `mask` cuts the whole order into minibatches
    and leaves the dropped records out of theirs. A ragged tail is left out (with `repack`, fewer than `size` kept
    records make the one minibatch), and a minibatch of fewer than two records never comes.

    Args:
        order: [n] int64, a permutation of 0..n-1.
        keep: [n] bool, by record number.
        size: records a minibatch.
        apply: how the selection is applied.

    Returns:
        the record numbers of each minibatch, int64, [size] with `repack`, at most [size] with `mask`.
    """
    kept = order[keep[order]]
    if apply == "repack":
        size = min(size, max(kept.shape[0], 1))
        chunks = kept[: kept.shape[0] // size * size].split(size)
    else:
        whole = order[: max(order.shape[0] // size, 1) * size]
        chunks = tuple(chunk[keep[chunk]] for chunk in whole.split(size))
    return [chunk for chunk in chunks if chunk.shape[0] >= 2]
