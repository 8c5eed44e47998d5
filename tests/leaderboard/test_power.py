"""`python -m leaderboard.power`: the table, what is impossible, and one sentence for bad input."""

import subprocess
import sys

import pytest

from filters.errors import UsageError, run_command
from leaderboard.power import joint_power, main, needed_seeds
from leaderboard.statistics.significance import paired_power


def run_main(monkeypatch, *argv: str) -> int:
    monkeypatch.setattr(sys, "argv", ["power", *argv])
    return run_command(main)


def rows(printed: str) -> dict[int, list[str]]:
    """The numbers of the table, by seeds."""
    lines = [line.split() for line in printed.splitlines()]
    return {int(line[0]): line[1:] for line in lines if len(line) == 4 and line[0].isdigit()}


def test_the_command_says_how_many_seeds_a_claim_needs():
    words = ["--effect", "1.5", "--tasks", "1", "--filters", "8", "--seeds", "5", "8", "9"]
    done = subprocess.run(
        [sys.executable, "-m", "leaderboard.power", *words], capture_output=True, text=True, timeout=60, check=True
    )
    assert "p ≤ 0.05 / 8 = 0.00625" in done.stdout
    table = rows(done.stdout)
    # with five or eight pairs not even the smallest p is small enough
    assert table[5] == ["5", "0.0", "0.0625"]
    assert table[8] == ["8", "0.0", "0.0078"]
    assert 40 < float(table[9][1]) < 70
    needed = int(done.stdout.split()[-1])
    assert sorted(table) == [5, 8, 9, needed]
    assert float(table[needed][1]) >= 80
    assert done.stderr == ""


def test_more_power_more_filters_and_smaller_effects_need_more_seeds():
    needed = needed_seeds(1.0, tasks=6, filters=8)
    assert needed_seeds(1.0, tasks=6, filters=8, rate=0.99) > needed
    assert needed_seeds(1.0, tasks=6, filters=1) < needed
    assert needed_seeds(1.0, tasks=2, filters=8) > needed
    # m = (z(0.996875) + z(0.8))² / 0.05² = (2.734 + 0.842)² / 0.0025 = 5,115 pairs, by the normal distribution
    assert needed_seeds(0.05, tasks=6, filters=8) == pytest.approx(5115 / 6, rel=0.01)


def test_a_huge_effect_still_needs_a_small_enough_p():
    # 2^(1 − m) <= 0.05 / 8 from m = 9 on
    assert needed_seeds(50.0, tasks=1, filters=8) == 9
    assert joint_power(50.0, 8, filters=8) == 0.0
    assert joint_power(50.0, 9, filters=8) == 1.0


def test_many_pairs_use_the_t_test():
    assert joint_power(0.3, 100, filters=4) == paired_power(0.3, 100, level=0.05 / 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--effect", "-1", "--tasks", "6", "--filters", "8"], "--effect -1 is no finite number above 0"),
        (["--effect", "nan", "--tasks", "6", "--filters", "8"], "--effect nan is no finite number above 0"),
        (["--effect", "1", "--tasks", "0", "--filters", "8"], "--tasks 0 is below 1"),
        (["--effect", "1", "--tasks", "6", "--filters", "0"], "--filters 0 is below 1"),
        (["--effect", "1", "--tasks", "6", "--filters", "8", "--rate", "1"], "--rate 1 does not lie between 0 and 1"),
        (["--effect", "1", "--tasks", "6", "--filters", "8", "--seeds", "0"], "--seeds 0 does not lie between 1"),
        (["--effect", "1e-5", "--tasks", "6", "--filters", "8"], "needs more than 100,000 seeds per task"),
        (["--effect", "1", "--tasks", "6", "--filters", "6000"], "compare at most 5,000 filters at once"),
    ],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, words, message):
    assert run_main(monkeypatch, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_bad_numbers_are_refused_without_the_command_too():
    with pytest.raises(UsageError, match="above 0"):
        needed_seeds(0.0, tasks=6, filters=8)
