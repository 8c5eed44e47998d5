"""Jobs on several processes: results in order, failures and interruptions that end everything, and a time left."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from filters.errors import UsageError
from harness.sweeps.side_by_side import Countdown, Report, run_side_by_side


def square(number: int, report: Report) -> tuple[int, int]:
    report(0.5, f"at {number}")
    if number < 0:
        raise UsageError(f"{number} has no place here")
    return number**2, os.getpid()


def test_results_come_in_order_from_other_processes() -> None:
    found = run_side_by_side(square, [3, 1, 2], jobs=2)
    assert [value for value, _ in found] == [9, 1, 4]
    assert os.getpid() not in [pid for _, pid in found]


def test_one_job_stays_in_this_process() -> None:
    assert run_side_by_side(square, [3, 1], jobs=1) == [(9, os.getpid()), (1, os.getpid())]
    assert run_side_by_side(square, [3], jobs=8) == [(9, os.getpid())]


def test_fewer_than_no_jobs_are_refused() -> None:
    with pytest.raises(UsageError, match="--jobs must be 0"):
        run_side_by_side(square, [1], jobs=-1)


def test_a_failure_of_a_process_is_the_callers() -> None:
    with pytest.raises(UsageError, match="-1 has no place here"):
        run_side_by_side(square, [1, -1], jobs=2)


def test_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    text = io.StringIO()
    with Countdown(Console(file=text, width=80), 2) as countdown:
        now = 60.0
        countdown.show(0, 0.5, "seed 0: round 3")
        countdown.show(1, 0.1, "too soon for another line")
    assert text.getvalue() == "[ 25%] seed 0: round 3 (about 3.0 min left)\n"


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_nothing_goes_on_after_the_command(way: signal.Signals, tmp_path: Path) -> None:
    """A terminal's Ctrl-C reaches the whole group and leaves one word; a kill reaches the command alone."""
    words = ["--task", "smoke-FrozenLake", "--episodes", "100000", "--rounds", "2", "--seeds", "2", "--jobs", "2"]
    command = [sys.executable, "-m", "harness.intervene", *words, "--out", str(tmp_path)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    while running.poll() is None and len(children.read_text().split()) < 3:  # two workers and a resource tracker
        time.sleep(0.1)
    time.sleep(1)
    if way == signal.SIGINT:
        os.killpg(running.pid, way)
        _, errors = running.communicate(timeout=60)
        assert running.returncode == 130
        assert errors == "interrupted\n"
    else:
        running.kill()
        running.communicate(timeout=60)
    wait_until_gone(running.pid)


def wait_until_gone(group: int) -> None:
    """Fails if a process of the group is there after a minute."""
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a worker goes on")
