"""The command, as people use it: sweeps, crashes, interruptions, bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from filters.registry import names
from leaderboard.runs.store import find_cells, read_cell, status

SMOKE = ["--task", "smoke-FrozenLake"]


def command(*words: str, out: Path, **options: str) -> list[str]:
    return [sys.executable, "-m", "harness.run", *words, "--out", str(out), "--jobs", "2"]


def run(*words: str, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words, out=out), capture_output=True, text=True, timeout=300)


def results(out: Path) -> dict[str, object]:
    """Everything in the complete cells that a repetition has to repeat (all but the times)."""
    found = {}
    for path in find_cells(out):
        cell = read_cell(path)
        found[str(path.relative_to(out))] = (
            cell.config,
            [episodes.tolist() for episodes in cell.returns],
            cell.steps.tolist(),
            cell.kept.tolist(),
            cell.optimizer_steps.tolist(),
        )
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    done = run("--filter", "iif", "random:fraction=0.5", "--suite", "smoke", "--seeds", "2", out=out)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("All tasks together", "smoke-FrozenLake/v1", "smoke-MiniGrid/v1", "iif", "random:fraction=0.5"):
        assert words in done.stdout
    return out


def test_a_sweep_leaves_every_cell_complete(undisturbed: Path) -> None:
    cells = find_cells(undisturbed)
    assert len(cells) == 2 * 3 * 2
    assert {status(cell) for cell in cells} == {"complete"}
    cell = read_cell(undisturbed / "smoke-MiniGrid-v1" / "iif" / "seed-1")
    assert cell.config["filter_fields"] == {"fraction": 0.125, "warmup": 0, "reference": None}
    assert cell.steps.tolist() == [256, 512]
    assert [len(episodes) for episodes in cell.returns] == [4, 4]
    assert set(cell.phase_seconds) >= {"environment", "inference", "filter", "update", "evaluation"}
    assert list(cell.path.glob("events.out.tfevents*"))
    provenance = json.loads((cell.path / "run.json").read_text())["provenance"]
    assert provenance["threads"] == 1
    assert provenance["jobs"] == 2
    assert provenance["packages"]["torch"]


def test_a_second_start_runs_nothing_again(undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("run.json")}
    done = run("--filter", "iif", "random:fraction=0.5", "--suite", "smoke", "--seeds", "2", out=undisturbed)
    assert done.returncode == 0
    assert "12 of them complete" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("run.json")} == before


def test_a_task_s_own_fraction_gives_way_to_the_spec(tmp_path: Path) -> None:
    done = run("--filter", "iif", "iif:fraction=0.1", "--no-baseline", "--seeds", "1", *SMOKE, out=tmp_path)
    assert done.returncode == 0, done.stderr
    fractions = {cell.spec: cell.config["filter_fields"]["fraction"] for cell in map(read_cell, find_cells(tmp_path))}
    assert fractions == {"iif": 0.5, "iif:fraction=0.1": 0.1}


def test_variations_are_runs_of_their_own(tmp_path: Path) -> None:
    """Another way to apply, another protocol, another backend: never in one comparison with the task itself."""
    words = ["--filter", "random:fraction=0.5", "--seeds", "1", "--task", "smoke-MiniGrid"]
    for more in ([], ["--apply", "mask"], ["--eval-episodes", "2"], ["--env-backend", "envpool"]):
        assert run(*words, *more, out=tmp_path).returncode == 0
    cells = [read_cell(path) for path in find_cells(tmp_path)]
    tasks = {cell.task for cell in cells}
    base = "smoke-MiniGrid/v1"
    assert tasks == {base, f"{base}@mask", f"{base}@eval-2-every-1", f"{base}@envpool"}
    assert len(cells) == 8
    applied = {(cell.task, cell.spec): cell.config["apply"] for cell in cells}
    assert applied[f"{base}@mask", "random:fraction=0.5"] == "mask"
    assert applied[base, "random:fraction=0.5"] == "repack"
    steps = {cell.task: cell.optimizer_steps.tolist() for cell in cells if cell.spec != "none"}
    assert steps[base] == [4, 4]  # half of 256 records in minibatches of 64, two epochs
    assert steps[f"{base}@mask"] == [8, 8]
    shown = subprocess.run(
        [sys.executable, "-m", "leaderboard.report", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 0
    assert all(task in shown.stdout for task in tasks)


def test_the_options_of_a_backend_that_lacks_them(tmp_path: Path) -> None:
    words = ["--filter", "iif", "--seeds", "1", *SMOKE, "--env-backend", "envpool"]
    done = run(*words, out=tmp_path / "out")
    assert done.returncode == 2
    assert "is_slippery" in done.stderr
    assert "gymnasium backend" in done.stderr
    assert not (tmp_path / "out").exists()


def test_all_runs_every_filter_and_ends_with_one_table_a_task(tmp_path: Path) -> None:
    done = run("--filter", "all", "--suite", "smoke", "--seeds", "1", out=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {read_cell(cell).spec for cell in find_cells(tmp_path)} == set(names())
    assert len(find_cells(tmp_path)) == 2 * len(names())
    assert done.stdout.count("All tasks together") == 1


def wait_for(condition: object, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():  # type: ignore[operator]
        assert process.poll() is None, "the sweep ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(out: Path) -> int:
    return len(list(out.rglob("config.json")))


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def completed(out: Path) -> int:
    return len(list(out.rglob("run.json")))


def test_a_killed_sweep_goes_on_and_ends_like_an_undisturbed_one(undisturbed: Path, tmp_path: Path) -> None:
    words = ("--filter", "iif", "random:fraction=0.5", "--suite", "smoke", "--seeds", "2")
    process = subprocess.Popen(command(*words, out=tmp_path), stdout=subprocess.DEVNULL, text=True)
    wait_for(lambda: completed(tmp_path) >= 3 and started(tmp_path) > completed(tmp_path), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)  # the workers notice that their parent is gone
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("run.json")}
    assert len(finished) < 12
    time.sleep(1)
    assert len(list(tmp_path.rglob("run.json"))) == len(finished), "a worker went on without its parent"

    done = run(*words, out=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    assert results(tmp_path) == results(undisturbed)


@pytest.mark.parametrize("moment", ["while the workers import", "while a cell runs"])
def test_interrupting_ends_soon_with_one_line_that_says_how_to_go_on(tmp_path: Path, moment: str) -> None:
    words = ("--filter", "iif", "--suite", "smoke", "--seeds", "4")
    process = subprocess.Popen(
        command(*words, out=tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    if moment == "while a cell runs":
        wait_for(lambda: started(tmp_path) >= 1, process)
    else:
        wait_for(lambda: len(workers_of(process)) == 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: parent and workers alike
    _, errors = process.communicate(timeout=60)
    assert completed(tmp_path) < 16, "the sweep went on to its end"
    assert process.returncode == 130
    assert errors.count("\n") == 1, errors
    assert "To go on: python -m harness.run --filter iif --suite smoke --seeds 4" in errors


def test_a_worker_that_is_killed_costs_only_its_cell(tmp_path: Path) -> None:
    words = ("--filter", "iif", "--seeds", "3", *SMOKE)
    process = subprocess.Popen(command(*words, out=tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: started(tmp_path) > completed(tmp_path), process)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "killed by SIGKILL" in output
    assert completed(tmp_path) == 5
    failure = json.loads(next(tmp_path.rglob("failure.json")).read_text())
    assert (failure["task"], failure["seed"]) == ("smoke-FrozenLake/v1", int(failure["seed"]))
    assert failure["provenance"]["packages"]["torch"]
    done = run(*words, out=tmp_path)
    assert done.returncode == 1
    assert "1 failed before (--retry-failed runs them again), 0 to run" in done.stdout
    assert "killed by SIGKILL" in done.stdout
    done = run(*words, "--retry-failed", out=tmp_path)
    assert done.returncode == 0
    assert completed(tmp_path) == 6
    assert not list(tmp_path.rglob("failure.json"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", "raised ZeroDivisionError in round 0"),
        ("NaNScores", "1024 NaN scores"),
        ("WrongLength", "shape [1023]"),
        ("IntegerIndices", "torch.int64"),
    ],
)
def test_a_filter_that_breaks_is_a_failed_cell_and_the_others_go_on(tmp_path: Path, name: str, words: str) -> None:
    spec = f"tests.broken_filters:{name}"
    done = run("--filter", spec, "random", "--seeds", "1", *SMOKE, out=tmp_path)
    assert done.returncode == 1
    assert words in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr
    assert completed(tmp_path) == 2
    failure = json.loads(next(tmp_path.rglob("failure.json")).read_text())
    assert words in failure["error"]
    assert "Traceback" in failure["traceback"]


def test_rounds_that_keep_nothing_are_recorded_as_skipped(tmp_path: Path) -> None:
    done = run("--filter", "tests.broken_filters:KeepsNothing", "--seeds", "1", "--no-baseline", *SMOKE, out=tmp_path)
    assert done.returncode == 0, done.stderr
    cell = read_cell(find_cells(tmp_path)[0])
    assert cell.skipped_rounds == len(cell.kept) == 2
    assert cell.kept.tolist() == [0, 0]


BAD = {
    "unknown filter": (["--filter", "iiff"], "unknown filter 'iiff'; did you mean 'iif'?"),
    "unknown field": (["--filter", "iif:p=0.5"], "has no field 'p'"),
    "wrong type": (["--filter", "iif:fraction=half"], "takes float, got 'half'"),
    "out of range": (["--filter", "iif:fraction=7"], "fraction must lie in [0, 1]"),
    "no filter": ([], "say which filter to run"),
    "unknown task": (["--filter", "iif", "--task", "FrozenLack"], "did you mean 'FrozenLake/v1'"),
    "unknown suite": (["--filter", "iif", "--suite", "quik"], "did you mean 'quick'"),
    "unknown device": (["--filter", "iif", "--device", "tpu"], "--device"),
    "absent device": (["--filter", "iif", "--device", "cuda"], "finds no CUDA device"),
    "no such module": (["--filter", "no_such.mod:Cls"], "can't import 'no_such.mod'"),
    "no such class": (["--filter", "tests.broken_filters:Nope"], "has no 'Nope'"),
    "not a filter": (["--filter", "tests.broken_filters:NotAFilter"], "is no filter"),
    "no seeds": (["--filter", "iif", "--seeds", "0"], "--seeds takes"),
    "seeds twice": (["--filter", "iif", "--seeds", "1,1"], "--seeds takes"),
    "seeds in words": (["--filter", "iif", "--seeds", "five"], "--seeds takes"),
    "jobs": (["--filter", "iif", "--jobs", "-3"], "--jobs must be"),
}


@pytest.mark.parametrize(
    "case", [case for case in BAD if case != "absent device" or not os.path.exists("/dev/nvidia0")]
)
def test_bad_input_gets_one_sentence_and_exit_code_2(tmp_path: Path, case: str) -> None:
    words, sentence = BAD[case]
    full = [sys.executable, "-m", "harness.run", *words, "--out", str(tmp_path / "out")]
    done = subprocess.run(full, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run("--filter", "iif", "--seeds", "1", *SMOKE, out=tmp_path / "file")
    assert done.returncode == 2
    assert "can't write to the output folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_truncated_run_directory_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    assert run("--filter", "random", "--seeds", "1", *SMOKE, out=tmp_path).returncode == 0
    cell = find_cells(tmp_path)[0]
    text = (cell / "config.json").read_text()
    (cell / "config.json").write_text(text[:100])
    done = run("--filter", "random", "--seeds", "1", *SMOKE, out=tmp_path)
    assert done.returncode == 2
    assert f"delete {cell} and run the same command again" in done.stderr
    assert completed(tmp_path) == 2
    (cell / "config.json").write_text(text)
    evals = cell / "evals.jsonl"
    evals.write_text(evals.read_text()[:-20])
    done = run("--filter", "random", "--seeds", "1", *SMOKE, out=tmp_path)
    assert done.returncode == 2
    assert "evals.jsonl is truncated" in done.stderr


def test_a_complete_run_of_other_settings_is_never_taken_for_this_one(tmp_path: Path) -> None:
    assert run("--filter", "random", "--seeds", "1", *SMOKE, out=tmp_path).returncode == 0
    cell = tmp_path / "smoke-FrozenLake-v1" / "random" / "seed-0"
    config = json.loads((cell / "config.json").read_text())
    config["filter_fields"]["fraction"] = 0.9
    (cell / "config.json").write_text(json.dumps(config))
    done = run("--filter", "random", "--seeds", "1", *SMOKE, out=tmp_path)
    assert done.returncode == 2
    assert "other settings (filter_fields differ)" in done.stderr


def test_list_and_help_explain() -> None:
    listed = subprocess.run([sys.executable, "-m", "harness.run", "--list"], capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0
    assert all(word in listed.stdout for word in ("iif", "MiniGrid-Empty-8x8-dtv/v1", "quick:"))
    shown = subprocess.run([sys.executable, "-m", "harness.run", "--help"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0
    assert all(word in shown.stdout for word in ("--filter", "--seeds", "--jobs", "baseline"))


def test_a_reader_that_goes_away_is_no_error() -> None:
    for words in ("--list", "--help"):
        line = f"{sys.executable} -m harness.run {words} | head -n 1"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
        assert done.stdout.count("\n") == 1
        assert done.stderr == ""


@pytest.mark.parametrize(("agent", "env_id"), [("ppo", "Acrobot-v1"), ("ppo_minigrid", "MiniGrid-Empty-5x5-v0")])
def test_an_agent_runs_alone(tmp_path: Path, agent: str, env_id: str) -> None:
    words = ["--env-id", env_id, "--filter", "iif", "--total-steps", "4096", "--eval-episodes", "2"]
    full = [sys.executable, "-m", f"algos.{agent}", *words]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run(full, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "kept 9" in done.stdout
    assert list(tmp_path.rglob("events.out.tfevents*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--env-id", "NoSuchEnv-v0"], "can't make environment 'NoSuchEnv-v0'"),
        (["--env-id", "Pendulum-v1"], "takes vectors and discrete actions"),
        (["--minibatch-size", "1"], "minibatch_size must lie in"),
        (["--num-envs", "0"], "num_envs must be at least 1"),
        (["--device", "tpu"], "--device"),
        (["--learning-rate", "-1"], "learning_rate must be above 0"),
        (["--gamma", "2"], "gamma must lie in [0, 1]"),
        (["--filter", "iiff"], "unknown filter"),
    ],
)
def test_an_agent_alone_explains_bad_input(words: list[str], sentence: str) -> None:
    done = subprocess.run([sys.executable, "-m", "algos.ppo", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_without_unicode_shows_what_it_can(tmp_path: Path) -> None:
    """The report is full of Δ, ± and ≤; the sweep before it must not end in an error over them."""
    words = ["--filter", "iif", "--task", "smoke-FrozenLake", "--seeds", "1", "--compile", "off", "--quiet"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "harness.run", *words, "--out", str(tmp_path)],
        capture_output=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"AUC" in done.stdout
    assert done.stdout.isascii()
