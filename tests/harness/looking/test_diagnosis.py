"""Diagnoses end to end on short tasks, and what the command refuses."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from filters.errors import UsageError
from harness import diagnose
from tests.harness.looking.found import LAKE, check_figures, read, run_on_commit

WORDS = [*LAKE, "--seed", "0,1", "--round", "2", "--jobs", "1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a diagnosis of two seeds, and what the command said."""
    out = tmp_path_factory.mktemp("diagnosis")
    return out, run_on_commit(diagnose.main, [*WORDS, "--out", str(out)])


def test_a_diagnosis_end_to_end(made: tuple[Path, str]) -> None:
    out, said = made
    assert said.count("sign mismatches bottom") == 2
    folder = out / "smoke-FrozenLake-v1" / "iif"
    check_figures(folder / "seed-1" / "round-2", {"records", "ranking", "fifths"})
    check_figures(folder, {"summary"})
    found = read(folder / "seed-1" / "round-2" / "diagnosis.json")
    assert found["summary"]["records"] == 1024, "all records, for they have at most 16 states"
    assert found["ranking"]["influence"] == sorted(found["ranking"]["influence"], reverse=True)
    top, bottom = found["shown"]["top"][0], found["shown"]["bottom"][0]
    assert top["influence"] == found["ranking"]["influence"][0]
    assert bottom["influence"] == found["ranking"]["influence"][-1]
    assert bottom["kept"] is False
    assert len(top["shows"]) == 4
    assert sum("[" in row for row in top["shows"]) == 1
    summary = read(folder / "summary.json")
    both = [read(folder / f"seed-{s}" / "round-2" / "diagnosis.json")["summary"] for s in (0, 1)]
    difference = [one["mismatch"]["bottom"] - one["mismatch"]["top"] for one in both]
    assert summary["rounds"]["2"]["bottom_minus_top"]["mean"] == pytest.approx(np.mean(difference))
    assert summary["seeds"] == [0, 1]


def test_finished_seeds_stay(made: tuple[Path, str], tmp_path: Path) -> None:
    out = shutil.copytree(made[0], tmp_path / "out")
    words = [*WORDS, "--out", str(out)]
    path = out / "smoke-FrozenLake-v1" / "iif" / "seed-0" / "round-2" / "diagnosis.json"
    first = path.stat().st_mtime_ns
    said = run_on_commit(diagnose.main, words)
    assert "seed 1, round 2: sign mismatches bottom" in said
    assert made[1].endswith(said.replace(str(out), str(made[0])))
    assert path.stat().st_mtime_ns == first
    words += ["--seed", "0", "--futures", "2", "--show", "1"]
    run_on_commit(diagnose.main, words)
    assert read(path)["advantages"]["futures"] == 2
    second = path.stat().st_mtime_ns
    run_on_commit(diagnose.main, words, edited=True)
    assert path.stat().st_mtime_ns > second, "edited code may find something else"


def test_trajectory_scores_repeating_states_and_another_trainer(tmp_path: Path) -> None:
    words = ["--filter", "dtv-loo", "--trained-by", "none", "--advantages", "repeats", "--round", "2"]
    assert diagnose.main([*LAKE, *words, "--out", str(tmp_path)]) == 0
    found = read(tmp_path / "smoke-FrozenLake-v1" / "dtv-loo@none" / "seed-0" / "round-2" / "diagnosis.json")
    assert found["advantages"]["how"].startswith("from states that repeat in the rollout")
    assert found["advantages"]["futures"] == 0
    assert 0 < found["summary"]["records"] <= 1024


def test_a_grid_end_to_end(tmp_path: Path) -> None:
    words = ["--task", "smoke-MiniGrid", "--records", "6", "--futures", "2", "--round", "1", "--show", "2"]
    assert diagnose.main([*words, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "smoke-MiniGrid-v1" / "iif" / "seed-0" / "round-1"
    check_figures(folder, {"records", "ranking", "fifths"})
    found = read(folder / "diagnosis.json")
    assert found["summary"]["records"] == 6
    assert found["shown"]["top"][0]["shows"][0] == "# # # # #"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--round", "3"], r"round 3 is beyond the task's budget of 2 rounds"),
        (["--round", "0"], "takes rounds from 1 on"),
        (["--filter", "none", "--round", "1"], "the filter none gives no scores to rank by"),
        (["--filter", "iif:warmup=1", "--round", "1"], "scores nothing in its first 1 rounds"),
        (["--task", "LunarLander", "--advantages", "futures"], "can't be set to a state"),
        (["--futures", "1"], "--futures must be 0"),
        (["--records", "0"], "--records must be at least 1"),
        (["--policy", "absent.ref", "--round", "1"], "--policy: can't read the reference"),
        (["--policy", __file__, "--round", "1"], "is no reference .*, or give a run's checkpoint.pt"),
        (["--target", "action", "--round", "1"], "needs a state"),
        (["--target", "action", "--round", "1", "--pick", "1024"], r"has records 0\.\.1023"),
        (["--target", "action", "--round", "1", "--observation", "1"], r"--action must lie in 0\.\.3"),
        (["--target", "action", "--round", "1", "--observation", "1", "--action", "4"], r"0\.\.3 on this task, got 4"),
        (["--target", "action", "--round", "1", "--observation", "1,2", "--action", "1"], r"has shape \[2\]"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        diagnose.main([*LAKE, *words, "--out", str(tmp_path)])


def test_bad_input_of_the_command(tmp_path: Path) -> None:
    words = ["-m", "harness.diagnose", "--task", "smoke-FrozenLake", "--round", "9", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --round: round 9 is beyond")
    assert "Traceback" not in done.stderr
