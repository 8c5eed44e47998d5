"""The doctor tells what can run, and the command that installs what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from algos.envs import extras
from harness import doctor
from harness.checks import installation
from harness.tasks.catalogue import TASKS


def lines(text: str) -> dict[str, str]:
    """Rows of the printed tables, by their first cell."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]
    return {row[0]: " | ".join(row[1:]) for row in rows if row[0]}


def test_everything_installed() -> None:
    done = subprocess.run([sys.executable, "-m", "harness.doctor"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    rows = lines(done.stdout)
    assert set(TASKS) <= set(rows)
    assert all(rows[name].startswith("runs") for name in TASKS)
    assert rows["MiniGrid-Empty-8x8/v3"] == "runs | runs"
    assert "no option 'is_slippery'" in rows["FrozenLake/v1"]
    for name in ("python", "gymnasium", "envpool", "cpu", "cores", "memory", "cuda"):
        assert rows[name]
    assert done.stdout.strip().endswith("the default suite (quick) can run")


def without(modules: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in modules else Path())


def test_missing_extras_are_named_with_their_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without({"Box2D", "ale_py", "highway_env", "envpool"}, monkeypatch)
    assert doctor.main([]) == 0
    out = capsys.readouterr().out
    rows = lines(out)
    fast = "pip install 'filtergym[envpool]'"
    assert rows["LunarLander/v2"] == f"pip install 'filtergym[box2d]' | {fast}"
    assert rows["Pong/v1"] == f"pip install 'filtergym[atari]' | {fast}"
    assert rows["Highway/v1"] == f"pip install 'filtergym[highway]' | {fast}"
    assert rows["Acrobot/v1"] == f"runs | {fast}"
    for extra in ("atari", "box2d", "envpool", "highway"):
        assert f"the extra {extra} is not installed: pip install 'filtergym[{extra}]'" in out


def test_exit_code_1_if_the_default_suite_can_t_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise OSError("libGL.so.1 not found")

    monkeypatch.setattr(installation, "make_vector_env", broken)
    assert doctor.main([]) == 1
    out = capsys.readouterr().out
    assert "OSError: libGL.so.1 not found" in out
    assert "the default suite (quick) can't run: " in out


def test_tasks_of_one_environment_share_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, str]] = []
    monkeypatch.setattr(installation, "trouble", lambda task, backend: tried.append((task.id, backend)))
    found = installation.troubles()
    assert found.keys() == TASKS.keys()
    environments = {(task.args.env_id, str(task.args.env_kwargs)) for task in TASKS.values()}
    assert len(tried) == 2 * len(environments) < 2 * len(TASKS)
