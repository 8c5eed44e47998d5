"""Locks of cells: one holder, gone with its process, also where the file system has none."""

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cells import lock
from harness.cells.lock import CellLock, is_locked

HOLD = """
import sys, time
from pathlib import Path
from harness.cells import lock
if sys.argv[2] == "no":
    lock.fcntl = None
assert lock.CellLock(Path(sys.argv[1])).take()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["flock", "no"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the system's locks and without them."""
    if request.param == "no":
        monkeypatch.setattr(lock, "fcntl", None)
    return str(request.param)


def test_one_holder_at_a_time_and_nothing_is_left(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "T-v1" / "none" / "seed-0"
    first, second = CellLock(path), CellLock(path)
    assert not is_locked(path)
    assert first.take()
    assert is_locked(path)
    assert not second.take()
    second.release()
    assert is_locked(path)
    first.release()
    assert not is_locked(path)
    assert second.take()
    second.release()
    assert list(path.parent.iterdir()) == []


def test_a_lock_ends_with_its_process(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "seed-0"
    words = [sys.executable, "-c", HOLD, str(path), kind]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert is_locked(path)
    assert not CellLock(path).take()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert not is_locked(path)
    mine = CellLock(path)
    assert mine.take()
    mine.release()


@pytest.mark.parametrize(
    ("holder", "locked"),
    [
        ({"host": "another", "pid": 1, "started": "5"}, True),
        ({"host": platform.node(), "pid": os.getpid(), "started": "5"}, False),  # the number was given out again
        ({"host": platform.node(), "pid": os.getpid(), "started": None}, True),
        ({"host": platform.node(), "pid": "x"}, True),
        ({"host": platform.node(), "pid": 2**70}, True),
    ],
)
def test_only_a_holder_that_has_certainly_ended_loses_its_lock(
    tmp_path: Path, holder: dict[str, object], locked: bool
) -> None:
    if lock.started(os.getpid()) is None:
        pytest.skip("this system does not tell when a process began")
    path = tmp_path / "seed-0"
    (tmp_path / ".seed-0.held").write_text(json.dumps(holder))
    assert is_locked(path) == locked


def test_a_lock_file_that_was_removed_in_the_meantime_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "seed-0"
    first, second = CellLock(path), CellLock(path)
    assert first.take()
    first.file.unlink()
    assert second.take()
    assert is_locked(path)
    second.release()
    first.release()
