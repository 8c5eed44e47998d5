"""The numbers that claims speak of, worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from leaderboard.claims import measures
from leaderboard.runs.store import CellRun


def cell(
    curve: list[float],
    *,
    seconds: list[float] | None = None,
    kept: float = 1.0,
    update: float = 1.0,
    filter: float = 0.0,
) -> CellRun:
    count = len(curve)
    return CellRun(
        path=Path("x"),
        config={"args": {}},
        task="T/v1",
        spec="iif",
        seed=0,
        steps=np.arange(1, count + 1) * 100,
        seconds=np.array(seconds or range(1, count + 1), dtype=np.float64),
        returns=(),
        kept=np.full(count, kept),
        optimizer_steps=np.ones(count, dtype=np.int64),
        skipped_rounds=0,
        phase_seconds={"update": update, "filter": filter},
        references={"random": 0.0, "solved": 2.0},
        means=np.array(curve),
    )


BASE = [cell([0.5, 1.0, 1.5, 2.0])]


def test_steps_saved() -> None:
    saved = measures.se_peak([cell([1.0, 2.0, 2.0, 2.0])], BASE)
    assert (saved.values.tolist(), saved.bound.tolist()) == ([0.5], [False])
    never = measures.se_peak([cell([1.0, 1.9, 1.9, 1.9])], BASE)
    assert (never.values.tolist(), never.bound.tolist()) == ([0.0], [True])
    assert measures.se_ave([cell([1.0, 2.0, 2.0, 2.0])], BASE).values == pytest.approx([(0 + 0.5 + 1 / 3 + 0.5) / 4])


def test_time_that_was_spent_without_getting_there_is_a_bound_that_may_lie_above_0() -> None:
    quick = measures.rt_peak([cell([1.0, 1.9, 1.9, 1.9], seconds=[0.5, 1.0, 1.5, 2.0])], BASE)
    assert (quick.values.tolist(), quick.bound.tolist()) == ([0.5], [True])
    slow = measures.rt_peak([cell([1.0, 1.9, 1.9, 1.9], seconds=[2.0, 4.0, 6.0, 8.0])], BASE)
    assert (slow.values.tolist(), slow.bound.tolist()) == ([-1.0], [True])
    there = measures.rt_peak([cell([1.0, 2.0, 1.9, 1.9], seconds=[0.5, 1.0, 1.5, 2.0])], BASE)
    assert (there.values.tolist(), there.bound.tolist()) == ([0.75], [False])


def test_differences() -> None:
    ours = [cell([1.0, 2.0, 1.0, 2.0], kept=0.75, seconds=[0.5, 1.0, 1.5, 3.0])]
    assert measures.area_difference(ours, BASE).values == pytest.approx(
        [(0.75 + 0.75 + 0.75 - 0.375 - 0.625 - 0.875) / 3]
    )
    assert measures.final_difference([cell([0.5, 1.0, 1.0, 1.5])], BASE).values.tolist() == [-0.5]
    assert measures.score_difference([cell([0.5, 1.0, 1.0, 1.5])], BASE).values.tolist() == [-0.25]
    assert measures.setback_difference(ours, BASE).values.tolist() == [
        0.125
    ]  # half a score below its best, once in four
    assert measures.kept_difference(ours, BASE).values.tolist() == [-0.25]
    assert measures.time_saved(ours, BASE).values.tolist() == [0.25]
    assert measures.filter_cost([cell([1.0], update=4.0, filter=0.5)], []).values.tolist() == [0.125]


def test_every_measure_of_the_page_is_explained() -> None:
    named = {each for each in vars(measures).values() if isinstance(each, measures.Measure)}
    assert named == measures.EXPLAINED.keys()
