"""AUROC and average precision by hand, and what a corrupted sweep says about its filters."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from harness.cells.cell import Cell, run_cell
from harness.cells.detection import auroc, average_precision
from harness.tasks.catalogue import TASKS, find_task
from leaderboard.report import to_markdown
from leaderboard.runs.store import read_cell
from leaderboard.statistics.comparison import compare
from leaderboard.statistics.corruption import detections

FLIP = TASKS["smoke-FrozenLake/v1"].varied(env_backend="gymnasium", corrupt="advantage-flip:0.4")


@pytest.mark.parametrize(
    ("corrupted", "suspicion", "area", "precision"),
    [
        ([1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0], 1.0, 1.0),
        ([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0], 0.0, 0.5 * 1 / 3 + 0.5 * 2 / 4),
        ([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], 0.75, 0.5 * 1 + 0.5 * 2 / 3),
        ([1, 0, 1, 0], [1.0, 1.0, 1.0, 1.0], 0.5, 0.5),  # all tied
        (
            [1, 0, 0, 1, 0],
            [2.0, 2.0, 1.0, 1.0, 0.0],
            0.75 - 1 / 12,
            0.5 * 1 / 2 + 0.5 * 2 / 4,
        ),  # ties
        ([1, 0, 0], [np.inf, 1.0, -np.inf], 1.0, 1.0),
    ],
)
def test_worked_examples(corrupted: list[int], suspicion: list[float], area: float, precision: float) -> None:
    marks, numbers = np.array(corrupted, bool), np.array(suspicion)
    assert auroc(marks, numbers) == pytest.approx(area)
    assert average_precision(marks, numbers) == pytest.approx(precision)


def test_auroc_is_scipy_s_u_statistic() -> None:
    rng = np.random.default_rng(0)
    marks, numbers = rng.random(200) < 0.3, rng.integers(0, 20, 200).astype(float)
    u = mannwhitneyu(numbers[marks], numbers[~marks]).statistic
    assert auroc(marks, numbers) == pytest.approx(u / (marks.sum() * (~marks).sum()))


@pytest.mark.parametrize("marks", [[True, True], [False, False]])
def test_with_one_class_nothing_can_be_said(marks: list[bool]) -> None:
    assert np.isnan(auroc(np.array(marks), np.zeros(2)))
    assert np.isnan(average_precision(np.array(marks), np.zeros(2)))


def test_the_oracle_finds_everything_and_random_nothing(tmp_path: Path) -> None:
    clean = TASKS["smoke-FrozenLake/v1"]
    for task in (clean, FLIP):
        for spec in ("none", "random:fraction=0.4", "tests.oracle:Oracle"):
            for seed in (0, 1):
                assert run_cell(Cell(task, spec, seed, tmp_path, trace=True), lambda *_: None) is None
    cells = [read_cell(path.parent) for path in tmp_path.rglob("run.json")]
    found = {one.spec: one for one in detections(compare(cells, ()))}
    oracle, random, none = found["tests.oracle:Oracle"], found["random:fraction=0.4"], found["none"]
    for numbers in (oracle.auroc, oracle.average_precision, oracle.recall, oracle.precision):
        assert np.array_equal(numbers, [1.0, 1.0])
    assert np.all(np.abs(random.auroc - 0.5) < 0.08)  # four standard errors of 1,024 records, of which 40 % are bad
    assert np.all(none.auroc == 0.5)
    assert np.isnan(none.precision).all()
    assert oracle.corrupted == pytest.approx([0.4, 0.4], abs=0.001)
    assert oracle.lost is not None
    text = to_markdown(compare(cells, ()))
    assert "who finds the records made harmful" in text
    assert "1.000 ± 0.000" in text

    with np.load(next(tmp_path.glob("*corrupt*/tests*/seed-0/trace/round-0000.npz"))) as trace:
        assert np.array_equal(trace["keep"], ~trace["corrupted"])
    with np.load(next(tmp_path.glob("smoke-FrozenLake-v1/none/seed-0/trace/*.npz"))) as trace:
        assert "corrupted" not in trace


def test_a_clean_run_says_nothing_of_corruption(tmp_path: Path) -> None:
    cell = Cell(TASKS["smoke-FrozenLake/v1"], "none", 0, tmp_path)
    assert run_cell(cell, lambda *_: None) is None
    assert all("corruption" not in json.loads(line) for line in (cell.path / "rounds.jsonl").read_text().splitlines())
    assert read_cell(cell.path).corruption == {}
    assert not (cell.path / "trace").exists()


def test_corrupted_tasks_have_ids_of_their_own() -> None:
    assert FLIP.id == "smoke-FrozenLake/v1@corrupt-advantage-flip-0.4"
    assert TASKS["smoke-FrozenLake/v1"].varied(env_backend="gymnasium", corrupt="reward-flip:0").id == (
        "smoke-FrozenLake/v1"
    )
    assert find_task("MiniGrid-Empty-8x8-dtv").id == "MiniGrid-Empty-8x8-dtv/v1", "the newest clean one"
