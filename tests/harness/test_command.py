"""`filtergym NAME` is `python -m` of the module behind it."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness import command
from leaderboard.runs.store import find_cells, status


def filtergym(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.command", *words], capture_output=True, text=True, timeout=300, check=False
    )


def test_every_name_has_a_module() -> None:
    assert all(find_spec(module) for module in command.COMMANDS.values())


def test_a_sweep_with_its_workers(tmp_path: Path) -> None:
    words = ["--task", "smoke-FrozenLake", "--filter", "random", "--seeds", "1", "--jobs", "2", "--compile", "off"]
    done = filtergym("run", *words, "--out", str(tmp_path), "--quiet")
    assert done.returncode == 0, done.stderr
    assert [status(path) for path in find_cells(tmp_path)] == ["complete"] * 2
    report = filtergym("report", str(tmp_path))
    assert report.returncode == 0
    assert "random" in report.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 0, "filtergym run"),
        (("--help",), 0, "python -m leaderboard.report"),
        (("repot",), 2, "did you mean 'report'"),
        (("report", "absent"), 2, "absent"),
    ],
)
def test_words_and_exit_codes(words: tuple[str, ...], code: int, said: str) -> None:
    done = filtergym(*words)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
