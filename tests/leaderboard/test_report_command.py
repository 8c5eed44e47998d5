"""`python -m leaderboard.report`: exit codes, one sentence for bad input, and a light import."""

import subprocess
import sys
from pathlib import Path

from filters.errors import run_command
from leaderboard.report import main


def run_main(monkeypatch, *argv: str) -> int:
    monkeypatch.setattr(sys, "argv", ["report", *argv])
    return run_command(main)


def test_exit_codes(write_cell, tmp_path, monkeypatch, capsys):
    runs = tmp_path / "runs"
    assert run_main(monkeypatch, str(runs)) == 2
    runs.mkdir()
    assert run_main(monkeypatch, str(runs)) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: {runs} is no folder")
    assert second.startswith(f"error: {runs} holds no runs")
    write_cell("none", 0, [0.1, 0.2])
    write_cell("iif", 0, [0.2, 0.3])
    assert run_main(monkeypatch, str(runs)) == 0
    assert "none (baseline)" in capsys.readouterr().out
    assert run_main(monkeypatch, str(runs), "--markdown") == 0
    assert capsys.readouterr().out.startswith("### FrozenLake/v1")
    assert run_main(monkeypatch, str(runs), "--baseline", "iif") == 0
    path = write_cell("none", 5, [0.1, 0.2])
    assert run_main(monkeypatch, str(runs)) == 1
    (path / "run.json").write_text('{"schema": 1, "sta')
    assert run_main(monkeypatch, str(runs)) == 2
    (message,) = capsys.readouterr().err.splitlines()
    remedy = f"delete {path} and run the same command again"
    assert message == f"error: {path / 'run.json'} is truncated or not JSON; {remedy}"


def test_the_leaderboard_is_light():
    """Reading results must be possible where nothing can train."""
    code = (
        "import sys, leaderboard.statistics.aggregates, leaderboard.power, leaderboard.report\n"
        "heavy = {'torch', 'gymnasium'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=60)
