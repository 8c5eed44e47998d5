"""How a selection is applied to minibatches, and what a score filter does around its score."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from filters.api import Objective, Rollout, ScoreFilter, minibatches, run_filter
from filters.check import make_case
from filters.errors import FilterError
from filters.iif import IIF
from filters.uniform import RandomFilter


def order(n: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(1))


def first(count: int, n: int) -> Tensor:
    return torch.arange(n) < count


def test_repack_fills_minibatches_in_the_common_order() -> None:
    keep = torch.tensor([True, False, True, True, True, False, True, True])
    permutation = torch.tensor([5, 3, 0, 7, 1, 2, 6, 4])
    batches = [batch.tolist() for batch in minibatches(permutation, keep, 2, "repack")]
    assert batches == [[3, 0], [7, 2], [6, 4]]


def test_mask_keeps_the_place_of_every_record() -> None:
    keep = torch.tensor([True, False, True, True, True, False, True, True])
    permutation = torch.tensor([5, 3, 0, 7, 1, 2, 6, 4])
    # [5, 3] and [1, 2] keep one record, which is no minibatch
    assert [batch.tolist() for batch in minibatches(permutation, keep, 2, "mask")] == [[0, 7], [6, 4]]
    assert [batch.tolist() for batch in minibatches(permutation, keep, 4, "mask")] == [[3, 0, 7], [2, 6, 4]]


@pytest.mark.parametrize("apply", ["repack", "mask"])
@pytest.mark.parametrize("n", [256, 250])
def test_both_ways_agree_when_nothing_is_dropped(apply: str, n: int) -> None:
    batches = minibatches(order(n), torch.ones(n, dtype=torch.bool), 64, apply)  # type: ignore[arg-type]
    assert [batch.shape[0] for batch in batches] == [64] * (n // 64)
    assert torch.equal(torch.cat(batches), order(n)[: n // 64 * 64])


@pytest.mark.parametrize(
    ("kept", "sizes"), [(0, []), (1, []), (2, [2]), (63, [63]), (64, [64]), (65, [64]), (129, [64, 64])]
)
def test_repack_never_makes_a_minibatch_of_one(kept: int, sizes: list[int]) -> None:
    batches = minibatches(order(256), first(kept, 256), 64, "repack")
    assert [batch.shape[0] for batch in batches] == sizes


@pytest.mark.parametrize("kept", range(0, 257, 5))
def test_mask_never_makes_a_minibatch_of_one(kept: int) -> None:
    batches = minibatches(order(256), first(kept, 256), 64, "mask")
    assert all(2 <= batch.shape[0] <= 64 for batch in batches)
    assert all(bool((batch < kept).all()) for batch in batches)
    places = order(256).split(64)
    assert len(batches) == sum(int((place < kept).sum()) >= 2 for place in places)


@dataclass(frozen=True, kw_only=True)
class ByValue(ScoreFilter):
    """Scores trajectories by number, the first one beyond scoring; drops the lowest of the rest."""

    unit = "trajectory"

    def score(self, rollout: Rollout, objective: Objective) -> Tensor:
        scores = torch.arange(rollout.num_trajectories, dtype=torch.float32)
        scores[0] = -torch.inf
        return scores

    def drop(self, scores: Tensor) -> Tensor:
        return scores == scores.min()


def test_units_map_back_to_their_records_and_the_unscorable_go() -> None:
    case = make_case(n=16, trajectories=4)
    selection = run_filter(ByValue(), case.rollout, case.objective)
    assert selection.keep.tolist() == [False] * 8 + [True] * 8


def test_rounds_of_warmup_pass_unfiltered() -> None:
    for round, dropped in [(0, 0), (1, 0), (2, 8)]:
        case = make_case(n=16, trajectories=4, round=round)
        assert int((~run_filter(ByValue(warmup=2), case.rollout, case.objective).keep).sum()) == dropped


def test_the_error_of_a_filter_names_it_the_round_and_the_cause() -> None:
    from tests.broken_filters import Raises

    case = make_case(round=3)
    with pytest.raises(FilterError, match=r"filter Raises\(\) raised ZeroDivisionError in round 3: a bug"):
        run_filter(Raises(), case.rollout, case.objective)


@pytest.mark.parametrize(
    ("scores", "fraction", "dropped"),
    [
        ([-3.0, 1.0, -1.0, -2.0, 2.0, -4.0], 0.5, [0, 5]),
        ([-3.0, 1.0, -1.0, -2.0, 2.0, -4.0], 0.49, [5]),
        ([-3.0, 1.0, -1.0, -2.0, 2.0, -4.0], 1.0, [0, 2, 3, 5]),
        ([-3.0, 1.0, -1.0, -2.0, 2.0, -4.0], 0.0, []),
        ([1.0, 2.0, 0.0], 1.0, []),
        ([-1.0, -2.0], 1.0, [0, 1]),
        ([-1.0, -2.0], 0.5, [1]),
        ([-2.0, -2.0, -2.0, -1.0], 0.5, []),  # records that tie with the threshold stay
    ],
)
def test_iif_drops_the_lowest_fraction_of_the_negatives(
    scores: list[float], fraction: float, dropped: list[int]
) -> None:
    mask = IIF(fraction=fraction).drop(torch.tensor(scores))
    assert mask.nonzero().flatten().tolist() == dropped


@pytest.mark.parametrize(("fraction", "kept"), [(0.0, 256), (0.125, 224), (0.3, 180), (1.0, 0)])
def test_random_drops_exactly_its_fraction(fraction: float, kept: int) -> None:
    case = make_case()
    assert int(RandomFilter(fraction=fraction).select(case.rollout, case.objective).keep.sum()) == kept
