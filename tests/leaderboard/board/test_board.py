"""The rows of the board against numbers worked out by hand, and what may never change them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from filters.errors import UsageError
from leaderboard.board.figures import extremes, figure_data, kept_curve, learning_curve
from leaderboard.board.rows import BoardRow, EntrySummary, is_newer, overview, rankings, summarise
from leaderboard.board.text import short_task
from leaderboard.entries.submission import Entry
from tests.leaderboard.made_up import make_entry

TWO_TASKS = {"FrozenLake-quick/v1": 2, "MiniGrid-Empty-8x8-quick/v1": 2}
ONE_TASK = {"FrozenLake-quick/v1": 2}
SHIFTS = np.array([0.28, 0.29, 0.30, 0.31, 0.32])  # of the five seeds: mean 0.3, standard deviation 0.01581


def flat_entry(key: str = "flat", *, tasks=TWO_TASKS, sign: float = 1.0, filters: int = 1) -> Entry:
    """Every curve is flat: 0.5 for the baseline, 0.5 ± SHIFTS[seed] for each filter. Updates take 2 s less of 10 s."""
    entry = make_entry(key, gains={f"filter-{number}": 0.0 for number in range(filters)}, tasks=tasks)

    def flatten(cell):
        level = 0.5 if cell.spec == "none" else 0.5 + sign * SHIFTS[cell.seed]
        ours = cell.spec != "none"
        return replace(
            cell,
            returns=tuple(np.full(4, level) for _ in cell.returns),
            seconds=np.array([4.0, 8.0] if ours else [5.0, 10.0]),
            kept=np.array([0.8, 0.9]) if ours else np.ones(2),
            phase_seconds={"filter": 2.0, "update": 6.0, "evaluation": 99.0} if ours else {"update": 10.0},
        )

    return replace(entry, cells=tuple(flatten(cell) for cell in entry.cells))


def only_filter(entry: Entry) -> BoardRow:
    (row,) = (row for row in summarise(entry).rows if not row.is_baseline)
    return row


def test_a_row_by_hand():
    row = only_filter(flat_entry())
    assert row.delta.mean == pytest.approx(0.3)
    both_tasks = np.concatenate([SHIFTS, SHIFTS])
    half = 2.262157 * both_tasks.std(ddof=1) / np.sqrt(10)  # t(0.975, 9)
    assert_allclose(row.delta[1:], [0.3 - half, 0.3 + half], rtol=1e-6)
    assert (row.pairs, row.p, row.p_holm, row.smallest_p_holm) == (10, 2 / 1024, 2 / 1024, 2 / 1024)
    assert row.verdict == "helps"
    assert row.score.mean == pytest.approx(0.8)
    assert row.improvement.mean == 1.0
    assert (row.se_peak.share, row.se_peak.bound, row.se_peak.pairs) == (0.0, 0, 10)  # both at the first checkpoint
    assert row.rt_peak.share == pytest.approx(0.2)
    assert row.time_ratio == pytest.approx(0.8)
    assert row.kept == pytest.approx(0.85)
    assert row.filter_share == pytest.approx(0.25)  # evaluation does not count
    first = row.tasks[0]
    half = 2.776445 * SHIFTS.std(ddof=1) / np.sqrt(5)
    assert_allclose(first.delta, [0.3, 0.3 - half, 0.3 + half], rtol=1e-6)
    assert (first.p, first.smallest_p) == (0.0625, 0.0625)
    assert first.final == pytest.approx(0.8)
    assert first.final_error == pytest.approx(SHIFTS.std(ddof=1) / np.sqrt(5))


def test_verdicts():
    worse = only_filter(flat_entry(sign=-1.0))
    assert (worse.verdict, worse.se_peak.bound) == ("harms", 10)
    assert only_filter(flat_entry(sign=0.0)).verdict == "not shown"
    few = only_filter(flat_entry(tasks=ONE_TASK))
    assert (few.p, few.verdict) == (0.0625, "too few runs")  # five pairs can't reach 5 %
    many = summarise(flat_entry(filters=26)).rows
    # 26 · 2 / 1024 > 5 %: so many filters ask more of Holm's correction than ten pairs can give
    assert {row.verdict for row in many if not row.is_baseline} == {"too few runs"}
    assert many[1].smallest_p_holm == many[1].p_holm == 26 * 2 / 1024


def test_the_ranking_goes_by_the_mean_difference_and_leaves_baselines_out():
    entries = [
        summarise(flat_entry("low", sign=0.5)),
        summarise(flat_entry("high")),
        summarise(flat_entry("also-high")),
    ]
    (ranking,) = rankings(entries)
    assert [row.key for row in ranking.rows] == ["also-high", "high", "low"]  # equal ones by name
    assert not any(row.is_baseline for row in ranking.rows)
    assert ranking.tasks == tuple(sorted(TWO_TASKS))


def test_an_entry_more_changes_no_other_entry():
    ours, other = make_entry("ours", 1, gains={"iif": 0.3}), make_entry("other", 2, gains={"iif": 0.5, "reward": -0.4})
    alone, together = rankings([summarise(ours)]), rankings([summarise(ours), summarise(other)])

    def rows(board):
        return [repr(row) for ranking in board for row in ranking.rows if row.key == "ours"]

    assert rows(alone) == rows(together)
    assert len(together[0].rows) == 3
    figures = [
        [figure_data(entry) for entry in board[0].entries if entry.entry.key == "ours"] for board in (alone, together)
    ]
    assert figures[0] == figures[1]


def test_other_versions_and_other_suites_are_ranked_apart():
    first = summarise(flat_entry("first"))
    newer = summarise(flat_entry("newer", tasks={"FrozenLake-quick/v2": 2, "MiniGrid-Empty-8x8-quick/v1": 2}))
    other = summarise(replace(flat_entry("other"), suite="cleanrl"))
    bad = {"FrozenLake-quick/v1": 2, "FrozenLake-quick/v1@corrupt-reward-flip-0.2": 2}
    corrupt = summarise(replace(flat_entry("bad", tasks=bad), suite="a-suite"))
    board = rankings([corrupt, first, newer, other])
    assert [(ranking.title, [row.key for row in ranking.rows]) for ranking in board] == [
        ("cleanrl", ["other"]),
        ("quick", ["newer"]),
        ("quick, with earlier tasks", ["first"]),
        ("a-suite", ["bad"]),
    ]
    assert short_task("FrozenLake-quick/v1@corrupt-reward-flip-0.2") == "FrozenLake-quick, reward-flip 0.2"


@pytest.mark.parametrize(
    ("tasks", "others", "newer"),
    [
        (("A/v2", "B/v1"), ("A/v1", "B/v1"), True),
        (("A/v10", "B/v1"), ("A/v9", "B/v1"), True),
        (("A/v1", "B/v1"), ("A/v1", "B/v1"), False),
        (("A/v2", "B/v1"), ("A/v1", "B/v2"), False),
        (("A/v2@envpool",), ("A/v1",), False),
        (("A/v2@corrupt-x-0.2",), ("A/v1@corrupt-x-0.2",), True),
        (("C/v2",), ("A/v1",), False),
        (("A",), ("A/v1",), False),
    ],
)
def test_which_versions_are_newer(tasks, others, newer):
    assert is_newer(tasks, others) is newer


def without(entry: Entry, spec: str, task: str, seeds: set[int]) -> Entry:
    keep = [cell for cell in entry.cells if (cell.spec, cell.task) != (spec, task) or cell.seed not in seeds]
    return replace(entry, cells=tuple(keep))


@pytest.mark.parametrize(
    ("seeds", "problem"), [({0, 1, 2, 3, 4}, "filter-0 was not run on it"), ({2}, "seed 2 is missing for filter-0")]
)
def test_a_filter_without_all_its_runs_comes_last_and_says_why(seeds, problem):
    entry = flat_entry("holes", filters=2)
    summary = summarise(without(entry, "filter-0", "FrozenLake-quick/v1", seeds))
    last = summary.rows[-1]
    assert (last.spec, last.delta, last.verdict, last.p_holm) == ("filter-0", None, "not computed", None)
    assert any(problem in sentence for sentence in summary.problems)
    assert summary.rows[1].verdict == "helps"
    figure_data(summary)


def test_a_clock_that_stands_still_is_a_sentence_not_a_traceback():
    entry = flat_entry()
    cells = tuple(replace(cell, seconds=np.zeros(2)) for cell in entry.cells)
    with pytest.raises(UsageError, match="the entry flat can't be compared"):
        summarise(replace(entry, cells=cells))


def first_cells(summary: EntrySummary, spec: str = "filter-0"):
    return [cell for cell in summary.entry.cells if (cell.spec, cell.task) == (spec, "FrozenLake-quick/v1")]


def test_bands_are_t_intervals_of_each_checkpoint():
    cells = first_cells(summarise(flat_entry()))
    curve = learning_curve(cells)
    half = 2.776445 * SHIFTS.std(ddof=1) / np.sqrt(5)
    assert curve["mean"] == [0.8, 0.8]
    assert_allclose(curve["high"], 0.8 + half, rtol=1e-3)  # four digits are kept
    assert_allclose(curve["low"], 0.8 - half, rtol=1e-3)
    assert curve["steps"] == [2048, 4096]
    assert learning_curve(cells[:1])["low"] == [None, None]


def test_long_curves_are_thinned_with_both_ends_kept():
    (cell,) = make_entry(gains={}, tasks={"T/v1": 1000}, seeds=[0]).cells
    curve = learning_curve([cell])
    assert len(curve["steps"]) == len(curve["mean"]) == 120
    assert (curve["steps"][0], curve["steps"][-1]) == (2048, 2048 * 1000)
    kept = kept_curve([replace(cell, kept=np.linspace(0.0, 1.0, 1200))])
    assert len(kept["kept"]) == 120
    assert kept["round"][:2] + kept["round"][-1:] == [10, 20, 1200]
    assert kept["kept"][0] == pytest.approx(4.5 / 1199, rel=1e-3)


def test_worst_and_best_episodes_are_pooled_over_the_seeds():
    cells = first_cells(summarise(flat_entry()))[:2]
    hundred = [replace(cell, returns=(np.arange(100.0)[::-1] + 1000 * place,)) for place, cell in enumerate(cells)]
    ends = extremes(hundred)
    assert ends["each"] == 20
    assert ends["worst"] == [*range(20), *range(1000, 1020)]
    assert ends["best"] == [*range(80, 100), *range(1080, 1100)]
    few = extremes([replace(cells[0], returns=(np.array([3.0, 1.0, 2.0, 4.0, 5.0]),))])
    assert (few["each"], few["worst"], few["best"]) == (2, [1, 2], [4, 5])


def test_profiles_are_shares_of_runs_above_fixed_thresholds():
    data = figure_data(summarise(flat_entry()))
    profile = next(row for row in data["rows"] if row["spec"] == "filter-0")["profile"]
    at = dict(zip(data["taus"], profile["fraction"], strict=True))
    # final scores 0.78, 0.79, 0.8, 0.81, 0.82 on both tasks
    assert (at[0.0], at[0.775], at[0.825], at[1.0]) == (1, 1, 0, 0)
    assert at[0.8] in (0.4, 0.6)  # 0.5 + 0.3 may round to either side of 0.8
    single = figure_data(summarise(flat_entry(tasks=ONE_TASK)))
    assert set(single["rows"][1]["profile"]["low"]) == {None}


def test_the_first_table_says_each_suite_s_verdict_on_each_filter():
    """Two entries that differ on one filter, and one on another task, which too few runs say nothing about."""
    board = rankings(
        [
            summarise(flat_entry("one")),
            summarise(flat_entry("two", sign=-1.0)),
            summarise(flat_entry("three", tasks=ONE_TASK, filters=2)),
        ]
    )
    table = {
        spec: dict(zip((len(ranking.tasks) for ranking in board), found, strict=True))
        for spec, found in overview(board)
    }
    assert table == {
        "filter-0": {2: "helps, harms", 1: "too few runs"},
        "filter-1": {2: "", 1: "too few runs"},
    }
