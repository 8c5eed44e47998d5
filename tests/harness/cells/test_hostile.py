"""Run directories made to do harm: nothing in them is run, and every tool ends with a sentence."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from filters.errors import run_command
from harness import run, status, verify
from harness.cells.cell import take_cell
from harness.checks import verification
from leaderboard.report import print_report
from leaderboard.runs.store import find_cells, write_json
from tests.harness.conftest import real_cell


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch owned",)


def config(path: Path, **values: object) -> None:
    """Change settings, and take away the digests that would give the change away."""
    write_json(path / "config.json", json.loads((path / "config.json").read_text()) | values)
    record = json.loads((path / "run.json").read_text())
    write_json(path / "run.json", {key: record[key] for key in record if key not in ("files", "digest")})


def first_line(path: Path, name: str, text: str) -> None:
    lines = (path / name).read_text().splitlines()
    (path / name).write_text("\n".join([text, *lines[1:]]) + "\n")


def replace_by(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def evil_module(path: Path) -> None:
    """A module beside the runs, where `python -m` would find it, and a spec that names it."""
    Path("evil_module.py").write_text("open('owned', 'w').close()\n")
    config(path, filter="evil_module:Payload")
    path.parent.rename(path.parents[1] / "evil_module:Payload")


DEEP = b'{"schema": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NUMBERS = '{"round": 1, "step": %s, "seconds": %s, "returns": [%s], "lengths": [1]}'
EVIL: dict[str, Callable[[Path], object]] = {
    "pickled settings": lambda path: (path / "config.json").write_bytes(pickle.dumps(Payload())),
    "a pickled log": lambda path: (path / "evals.jsonl").write_bytes(pickle.dumps(Payload())),
    "a module to import": evil_module,
    "a module to import inside a filter": lambda path: config(path, filter="random-matched:of=evil_module:Payload"),
    "deep settings": lambda path: (path / "config.json").write_bytes(DEEP),
    "a deep total": lambda path: (path / "run.json").write_bytes(DEEP),
    "a deep line": lambda path: (path / "rounds.jsonl").write_bytes(DEEP),
    "gigantic settings": lambda path: (path / "config.json").write_bytes(b'{"x": "' + b"x" * (9 * 2**20) + b'"}'),
    "a gigantic file": lambda path: os.truncate(path / "evals.jsonl", 2**40),
    "a gigantic line": lambda path: (path / "evals.jsonl").write_bytes(b"x" * (9 * 2**20)),
    "a gigantic number": lambda path: first_line(path, "evals.jsonl", NUMBERS % ("1" + "0" * 4000, "1.0", "0.0")),
    "too many digits": lambda path: first_line(path, "evals.jsonl", NUMBERS % ("1" + "0" * 9000, "1.0", "0.0")),
    "a gigantic return": lambda path: first_line(path, "evals.jsonl", NUMBERS % ("1", "1.0", "1" + "0" * 400)),
    "an overflow": lambda path: first_line(path, "evals.jsonl", NUMBERS % ("1", "1.0", "1e999")),
    "not a number": lambda path: first_line(path, "evals.jsonl", NUMBERS % ("1", "NaN", "0.0")),
    "a gigantic seed": lambda path: config(path, seed=10**400),
    "a negative seed": lambda path: config(path, seed=-1),
    "escape sequences": lambda path: config(path, task="\x1b]0;owned\x07\x1b[2J"),
    "half a character": lambda path: config(path, filter="\ud800"),
    "a way out": lambda path: config(path, task="../../../etc", filter="../../x"),
    "objects for words": lambda path: config(path, task={"a": [1]}, filter=[[]]),
    "lists for settings": lambda path: config(path, args=[1], filter_fields=3, references="x"),
    "odd references": lambda path: config(path, references={"random": "x", "solved": None}),
    "odd arguments": lambda path: config(path, args={"total_steps": -1, "num_envs": True, "compile": [[]]}),
    "an unknown device": lambda path: config(path, device="tpu"),
    "a link to a secret": lambda path: replace_by(path / "config.json", lambda file: file.symlink_to("/etc/passwd")),
    "a link to itself": lambda path: replace_by(path / "evals.jsonl", lambda file: file.symlink_to(file)),
    "a link without end": lambda path: replace_by(path / "evals.jsonl", lambda file: file.symlink_to("/dev/zero")),
    "a pipe": lambda path: replace_by(path / "rounds.jsonl", os.mkfifo),
    "a folder for a file": lambda path: replace_by(path / "config.json", Path.mkdir),
    "a pipe for a lock": lambda path: os.mkfifo(path.with_name(".seed-0.lock")),
    "odd provenance": lambda path: (
        config(path) or edit_run(path, provenance={"packages": {"t\x1b": [[]]}, "sources": 3})
    ),
    "odd digests": lambda path: edit_run(path, files=[1]),
}


def edit_run(path: Path, **values: object) -> None:
    write_json(path / "run.json", json.loads((path / "run.json").read_text()) | values)


def tools(runs: Path) -> dict[str, Callable[[], int]]:
    """Everything that reads a folder of runs."""
    sweep = ["--filter", "random", "--no-baseline", "--seeds", "1", "--task", "smoke-FrozenLake", "--out", str(runs)]
    return {
        "report": lambda: print_report(runs),
        "verify": lambda: verify.main([str(runs), "--strict"]),
        "status": lambda: status.main([str(runs)]),
        "status --json": lambda: status.main([str(runs), "--json"]),
        "run --dry-run": lambda: run.main([*sweep, "--dry-run"]),
    }


@pytest.mark.parametrize("evil", EVIL)
def test_no_tool_runs_it_or_breaks_on_it(
    real_runs: Path, evil: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(real_runs)
    monkeypatch.syspath_prepend(str(real_runs))
    EVIL[evil](real_cell(real_runs).path)
    codes = {name: run_command(tool) for name, tool in tools(real_runs).items()}
    out, err = capfd.readouterr()
    assert set(codes.values()) <= {0, 1, 2}
    assert codes["verify"] != 0 or evil == "a pipe for a lock"
    assert "Traceback" not in out + err
    assert all(line.startswith("error: ") for line in err.splitlines())
    assert not any(char in out + err for char in "\x1b\x07")
    assert not (real_runs / "owned").exists()
    assert "evil_module" not in sys.modules


def test_the_real_command_stays_at_one_sentence(real_runs: Path) -> None:
    path = real_cell(real_runs).path
    evil_module_here = real_runs / "evil_module.py"
    evil_module_here.write_text("open('owned', 'w').close()\n")
    config(path, filter="evil_module:Payload")
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    for words in (["-m", "harness.verify", "."], ["-m", "leaderboard.report", "."], ["-m", "harness.status", "."]):
        done = subprocess.run(
            [sys.executable, *words], cwd=real_runs, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr
    assert not (real_runs / "owned").exists()


@pytest.mark.parametrize("pipe", ["config.json", "evals.jsonl"])
def test_a_pipe_beside_a_checkpoint_makes_the_cell_start_over(real_runs: Path, pipe: str) -> None:
    cell = real_cell(real_runs)
    (cell.path / "run.json").unlink()
    (cell.path / "checkpoint.pt").write_bytes(pickle.dumps(Payload()))
    replace_by(cell.path / pipe, os.mkfifo)
    assert take_cell(cell, lambda done, rounds: None).error is None
    assert verification.verify(real_runs).problems == ()
    assert not Path("owned").exists()


def test_names_lead_nowhere(tmp_path: Path) -> None:
    """Links are not followed, however deep a folder is, and names that are no seed's are none."""
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere" / "seed-3"
    for folder in (runs / "T-v1" / "none", elsewhere):
        folder.mkdir(parents=True)
    (elsewhere / "run.json").touch()
    (runs / "T-v1" / "none" / "seed-3").symlink_to(elsewhere)
    (runs / "loop").symlink_to(runs)
    deep = runs
    for _ in range(200):
        deep = deep / "d"
    deep.mkdir(parents=True)
    for name in ("seed-", "seed--1", "seed-1\n", "seed-٣", "seed-" + "9" * 200, "seed-0x1", b"seed-\xff"):
        folder = Path(os.fsdecode(os.path.join(os.fsencode(runs), os.fsencode(name))))
        folder.mkdir()
        (folder / "run.json").touch()
    assert find_cells(runs) == []


def test_a_failure_is_shown_without_what_it_smuggles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "T\x1b[2J-v1" / "no\nne" / "seed-0"
    path.mkdir(parents=True)
    failure = {"schema": 1, "error": "\x1b[2J\ud800 it\nfailed", "traceback": "", "round": None}
    (path / "failure.json").write_text(json.dumps(failure))
    for code in (print_report(tmp_path), status.main([str(tmp_path)]), verify.main([str(tmp_path)])):
        assert code in (0, 1)
    out = capsys.readouterr().out
    assert "\\x1b[2J\\ud800 it" in " ".join(out.split())
    assert "\x1b" not in out
