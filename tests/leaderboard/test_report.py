"""The comparison end to end: run directories in, tables out."""

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console
from scipy import stats

from filters.errors import UsageError
from leaderboard.report import print_report, render, to_markdown
from leaderboard.runs.folder import load
from leaderboard.statistics.comparison import Comparison, TaskComparison, compare
from leaderboard.statistics.significance import detectable_effect, effect_size
from leaderboard.statistics.tables import suite_sheets, task_sheets

BASELINE = [0.0, 0.2, 0.4, 0.4]  # peak at step 300
FASTER = [0.2, 0.4, 0.4, 0.4]  # peak at step 200
SLOWER = [0.0, 0.1, 0.1, 0.2]  # never
BASELINE_AUC = (0.1 + 0.3 + 0.4) / 3
FASTER_AUC = (0.3 + 0.4 + 0.4) / 3


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def write_pairs(write_cell, *, seeds=range(5), task="FrozenLake/v1", iif=FASTER):
    for seed in seeds:
        shift = 0.01 * seed
        write_cell("none", seed, BASELINE, task=task)
        write_cell("iif", seed, [value + shift for value in iif], task=task, kept=0.9, filter_seconds=0.25)


def read(runs: Path, **kwargs) -> Comparison:
    return compare(*load(runs), **kwargs)


def only_task(runs: Path) -> TaskComparison:
    (task,) = read(runs).tasks
    return task


def text(comparison: Comparison, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(render(comparison, width=width))
    return console.file.getvalue()


def test_a_comparison_by_hand(write_cell, runs):
    write_pairs(write_cell)
    comparison = read(runs)
    (task,) = comparison.tasks
    none, iif = task.rows
    assert (none.spec, iif.spec) == ("none", "iif")
    assert none.versus is None
    assert iif.seeds == (0, 1, 2, 3, 4)
    assert_allclose(iif.final, 0.4 + 0.01 * np.arange(5))
    assert_allclose(iif.kept, 0.9)
    assert_allclose(iif.filter_share, 0.25)
    assert_allclose(none.auc, BASELINE_AUC)
    differences = FASTER_AUC - BASELINE_AUC + 0.01 * np.arange(5)
    assert_allclose(iif.versus.differences, differences)
    assert iif.versus.interval.mean == pytest.approx(differences.mean())
    half = iif.versus.interval.high - iif.versus.interval.mean
    assert half == pytest.approx(2.776 * differences.std(ddof=1) / np.sqrt(5), rel=2e-4)
    assert iif.versus.test.p == iif.versus.test.smallest_p == iif.versus.wilcoxon == 0.0625
    assert iif.versus.paired_t == pytest.approx(stats.ttest_rel(iif.auc, none.auc).pvalue)
    assert_allclose(iif.versus.se_peak.values, 1 - 200 / 300)
    assert_allclose(iif.versus.rt_peak.values, 1 - 2 / 3)
    assert comparison.whole
    (joint,) = comparison.joint
    assert (joint.spec, joint.tasks, len(joint.differences), joint.p_holm) == ("iif", 1, 5, 0.0625)


def test_scores_are_normalised_by_the_references_of_the_task(write_cell, runs):
    references = {"random": -500.0, "solved": -100.0}
    write_cell("none", 0, [-500.0], references=references)
    write_cell("iif", 0, [-200.0], references=references)
    none, iif = only_task(runs).rows
    assert_allclose([none.auc[0], iif.auc[0]], [0.0, 0.75])
    assert_allclose(iif.versus.differences, 0.75)


def test_the_tables_show_the_numbers_and_fit_into_100_columns(write_cell, runs):
    write_pairs(write_cell)
    long_spec = "my_package.my_module:MyFilter:fraction=0.25,warmup=5"
    for seed in range(5):
        write_cell(long_spec, seed, SLOWER)
    shown = text(read(runs))
    assert max(map(len, shown.splitlines())) <= 100
    assert "…" not in shown
    assert "none (baseline)" in shown
    assert "0.420 ± 0.007" in shown  # final return
    assert "0.387" in shown  # AUC
    assert "33.3 ± 0.0" in shown  # SE_peak
    assert "≤ -33.3 ± 0.0" in shown
    assert "(5 of 5 bound)" in shown
    assert "[+0.100, +0.140]" in shown
    assert "(5 pairs: p ≥ 0.0625, detectable d_z 1.69)" in shown
    assert "90.0" in shown
    assert "25.0" in shown


def test_a_narrow_terminal_cuts_no_number(write_cell, runs):
    write_pairs(write_cell)
    shown = text(read(runs), width=80)
    assert max(map(len, shown.splitlines())) <= 80
    words = shown.split()
    assert words.count("33.3") == 2  # SE_peak and RT_peak
    assert "25.0" in words
    assert "+0.140]" in words


def test_joint_test_pools_tasks_and_corrects_for_the_number_of_filters(write_cell, runs):
    for task in ("A/v1", "B/v1"):
        write_pairs(write_cell, task=task)
        for seed in range(5):
            write_cell("random", seed, BASELINE, task=task)
    iif, random = read(runs).joint
    assert (iif.tasks, len(iif.differences)) == (2, 10)
    assert iif.test.p == 2**-9
    assert iif.effect == pytest.approx(effect_size(iif.differences))
    assert iif.detectable == detectable_effect(10, level=0.05 / 2)
    assert random.detectable == iif.detectable
    assert iif.p_holm == 2**-8
    assert (random.test.p, random.p_holm) == (1.0, 1.0)


def test_five_pairs_of_a_single_task_can_detect_nothing_jointly(write_cell, runs):
    write_pairs(write_cell)  # the smallest p, 0.0625, is above 5 %
    assert np.isnan(read(runs).joint[0].detectable)
    assert read(runs).aggregates == ()


def test_aggregates_over_tasks_by_hand(write_cell, runs):
    for seed in range(2):
        for task, references in (("A/v1", (0.0, 1.0)), ("B/v1", (-100.0, 100.0))):
            settings = {"task": task, "references": dict(zip(("random", "solved"), references, strict=True))}
            low, high = references
            write_cell("none", seed, [low + (high - low) * 0.5], **settings)
            write_cell("iif", seed, [low + (high - low) * (0.5 if task == "A/v1" else 0.7 + 0.1 * seed)], **settings)
    none, iif = read(runs).aggregates
    assert (none.spec, iif.spec) == ("none", "iif")
    assert_allclose(iif.scores, [[0.5, 0.7], [0.5, 0.8]])  # [S, M]
    assert none.iqm == (0.5, 0.5, 0.5)
    assert none.improvement is None
    assert iif.iqm.mean == pytest.approx((0.5 + 0.7) / 2)  # the lowest and the highest of four runs go
    assert iif.improvement == (0.75, 0.75, 0.75)  # every pair ties on A, every pair is won on B
    markdown = to_markdown(read(runs))
    assert "| none (baseline) | 2 | 0.500 | [0.500, 0.500] | – | – |" in markdown
    assert "| iif | 2 | 0.600 | [0.600, 0.650] | 75.0% | [75.0%, 75.0%] |" in markdown
    assert "75.0%" in text(read(runs))
    assert "P(better):" in markdown


def test_an_incomplete_filter_has_no_aggregate_and_leaves_the_others_alone(write_cell, runs):
    for task in ("A/v1", "B/v1"):
        write_pairs(write_cell, task=task)
    whole = read(runs).aggregates
    write_cell("random", 0, FASTER, task="A/v1")
    none, iif, random = read(runs).aggregates
    assert (random.iqm, random.improvement, random.scores.size) == (None, None, 0)
    assert (none.iqm, iif.iqm, iif.improvement) == (whole[0].iqm, whole[1].iqm, whole[1].improvement)
    assert "| random | – | – | – | – | – |" in to_markdown(read(runs))
    write_cell("random", 0, FASTER, task="B/v1")
    assert read(runs).aggregates[2].iqm.mean == pytest.approx(0.4)
    assert read(runs).aggregates[2].improvement is None  # the baseline has four more seeds


def test_wide_numbers_are_neither_cut_nor_wrapped_at_100_columns(write_cell, runs):
    spec = "random-matched:of=iif:fraction=0.25;warmup=5"
    references = {"random": -2000.0, "solved": 2000.0}
    for task in ("A/v1", "B/v1"):
        for seed in range(2):
            late = [-1500.0] * (1 + seed)
            write_cell("none", seed, [*late, *[1500.0] * (100 - len(late))], task=task, references=references)
            write_cell(spec, seed, [-1234.5 + 400 * seed] * 100, task=task, references=references, kept=0.5)
    comparison = read(runs)
    shown = text(comparison)
    assert max(map(len, shown.splitlines())) <= 100
    assert "-1034.5 ± 200.0" in shown
    sheets = [sheet for task in comparison.tasks for sheet in task_sheets(task, "none")] + suite_sheets(comparison)
    numbers = {line for sheet in sheets for row in sheet.rows for cell in row[1:] for line in cell.splitlines()}
    assert "≤ -4066.7 ± 833.3" in numbers
    assert [number for number in numbers if number not in shown] == []


def test_one_seed_prints_dashes_for_what_is_undefined(write_cell, runs):
    write_pairs(write_cell, seeds=[0])
    iif = only_task(runs).rows[1]
    assert np.isnan(iif.versus.interval.low)
    markdown = to_markdown(read(runs))
    assert "| iif | +0.100 | – | – | 1.0000 | – | 1.0000 | 90.0 | 25.0 |" in markdown
    assert "### FrozenLake/v1: against the baseline, and cost (1 pair: p ≥ 1.0000)" in markdown
    assert "nan" not in markdown
    assert "nan" not in text(read(runs))


def test_a_missing_seed_is_named_and_nothing_is_compared(write_cell, runs):
    write_pairs(write_cell, seeds=[0, 1, 2])
    write_cell("none", 3, BASELINE)
    write_cell("iif", 4, FASTER)
    write_cell("random", 0, BASELINE)
    task = only_task(runs)
    assert all(row.versus is None for row in task.rows)
    assert task.problems == (
        "iif is not compared with none, because seed 3 is missing for iif and seed 4 is missing for none",
        "random is not compared with none, because seeds 1, 2, 3 are missing for random",
    )
    comparison = read(runs)
    assert not comparison.whole
    assert comparison.joint[0].test is None
    assert task.problems[1] in " ".join(text(comparison).split())


def test_a_seed_that_failed_on_both_sides_is_missing_too(write_cell, write_failure, runs):
    write_pairs(write_cell, seeds=[0, 1])
    write_failure("iif", 2, "boom")
    write_failure("none", 2, "boom")
    (problem,) = only_task(runs).problems
    assert problem.endswith("seed 2 is missing for iif and seed 2 is missing for none")


def test_failed_cells_are_rows_with_their_error(write_cell, write_failure, runs, capsys):
    write_pairs(write_cell, seeds=[0, 1])
    write_cell("none", 2, BASELINE)
    write_failure("iif", 2, "the filter returned NaN | scores [red]")
    write_failure("broken", 0, "it raised ValueError")
    assert print_report(runs, console=Console(file=(out := io.StringIO()), width=100)) == 1
    assert "the filter returned NaN | scores [red]" in out.getvalue()
    assert print_report(runs, markdown=True) == 1
    printed = capsys.readouterr().out
    assert "| iif | 2 | the filter returned NaN \\| scores [red] |" in printed
    assert "| broken | 0 | – | – | – | – | – |" in printed
    assert "| broken | 0 | it raised ValueError |" in printed


def test_a_filter_without_a_test_counts_as_p_one_in_holm(write_cell, write_failure, runs):
    write_pairs(write_cell)
    write_failure("broken", 0, "boom")
    broken, iif = read(runs).joint
    assert broken.test is None
    assert iif.p_holm == 2 * 0.0625


def test_a_missing_comparison_on_one_task_leaves_no_joint_test(write_cell, runs):
    write_pairs(write_cell, task="A/v1")
    write_pairs(write_cell, task="B/v1", seeds=range(4))
    write_cell("none", 4, BASELINE, task="B/v1")
    (joint,) = read(runs).joint
    assert joint.test is None
    assert joint.differences.size == 0
    assert "| iif | 2 of 2 | – | – | – | – | – | – | – |" in to_markdown(read(runs))


def test_an_interrupted_cell_is_named(write_cell, runs):
    write_pairs(write_cell, seeds=[0, 1])
    path = write_cell("iif", 2, FASTER)
    (path / "run.json").unlink()
    task = only_task(runs)
    assert [(failure.spec, failure.seed) for failure in task.failures] == [("iif", 2)]
    assert "run the same command again" in task.failures[0].error


def test_listed_cells_that_never_started_count_as_missing(write_cell, runs):
    paths = [write_cell("none", 0, BASELINE), write_cell("iif", 0, FASTER)]
    write_cell("random", 0, FASTER)
    cells, failures = load([*paths, paths[1].with_name("seed-1")])
    assert [cell.spec for cell in cells] == ["none", "iif"]
    assert [(f.task, f.spec, f.seed) for f in failures] == [("FrozenLake/v1", "iif", 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device": "cuda"}, "different device (cpu against cuda)"),
        ({"references": {"random": 0.0, "solved": 2.0}}, "different references.solved (1.0 against 2.0)"),
        ({"args": {"learning_rate": 0.1}}, "different args.learning_rate (0.005 against 0.1)"),
        ({"args": {"learning_rate": 0.005, "gamma": 1}}, "different args.gamma (None against 1)"),
        ({"step": 50}, "different checkpoints (4 up to step 400 against 4 up to step 200)"),
    ],
)
def test_unlike_runs_are_never_paired(write_cell, runs, change, words):
    write_cell("none", 0, BASELINE)
    write_cell("iif", 0, FASTER, **change)
    (problem,) = only_task(runs).problems
    assert words in problem
    assert "none with seed 0 against iif with seed 0" in problem


def test_seeds_of_one_filter_must_share_its_fields(write_cell, runs):
    for seed in (0, 1):
        write_cell("none", seed, BASELINE)
        write_cell("iif", seed, FASTER, filter_fields={"fraction": 0.5 - 0.1 * seed})
    (problem,) = only_task(runs).problems
    assert "iif has different filter_fields.fraction (0.5 against 0.4) between seeds 0 and 1" in problem


def test_another_baseline_or_none_at_all(write_cell, runs, capsys):
    write_pairs(write_cell)
    assert [row.spec for row in read(runs, baseline="iif").tasks[0].rows] == ["iif", "none"]
    nothing = read(runs, baseline=None)
    assert nothing.joint == ()
    assert nothing.whole
    assert print_report(runs, baseline="dtv", markdown=True) == 1
    assert "the baseline dtv was not run" in capsys.readouterr().out


def test_only_the_baseline_is_no_problem(write_cell, runs):
    write_cell("none", 0, BASELINE)
    assert read(runs).whole
    assert "joint" not in text(read(runs)).split("±")[0]


def test_the_same_cell_twice_is_refused(write_cell, tmp_path):
    write_cell("none", 0, BASELINE, root=tmp_path / "all" / "a")
    write_cell("none", 0, BASELINE, root=tmp_path / "all" / "b")
    with pytest.raises(UsageError, match="both none on FrozenLake/v1 with seed 0"):
        read(tmp_path / "all")


def test_markdown_has_well_formed_tables(write_cell, runs):
    write_pairs(write_cell)
    lines = to_markdown(read(runs)).splitlines()
    assert "| none (baseline) | 5 | 0.400 ± 0.000 | 0.267 | – | – | – |" in lines
    assert "| iif | 5 | 0.420 ± 0.007 | 0.387 | 33.3 ± 0.0 | 11.1 ± 0.0 | 33.3 ± 0.0 |" not in lines
    header = next(n for n, line in enumerate(lines) if line.startswith("| Filter | Seeds"))
    table = lines[header : header + 4]
    assert {line.count(" | ") for line in table} == {6}
    assert any(line.startswith("- ≤:") for line in lines)
