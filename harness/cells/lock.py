"""Who may write a cell's folder, where several sweeps share one output folder?

A lock is a file beside the cell's folder, `.seed-3.lock`. The operating system holds it (`flock`), so it ends with its
process however that ends. Where a file system has no such locks, the existence of `.seed-3.held` is the lock: it names
host, process and start of its holder, and one whose holder has ended on this host is taken over.
"""

import errno
import json
import os
import platform
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from filters.errors import UsageError
from leaderboard.runs.jsonfile import load_object

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""what `flock` answers on a file system without locks"""


class CellLock:
    """The right to write the folder of a cell; use it as a context after `take`.

    Args:
        path: the cell's folder, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.file = path.with_name(f".{path.name}.lock")
        self.held = path.with_name(f".{path.name}.held")
        self._descriptor: int | None = None
        self._owned = False

    def take(self) -> bool:
        """Try to get the lock, without waiting; False if another process has it.

        Raises:
            OSError: if the folder can't be written to.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        answer = None
        while answer is None:
            answer = self._flock() if fcntl else self._create()
        return answer

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor is not None or self._owned:
            for file in (self.file, self.held) if self._owned else (self.file,):
                with suppress(OSError):
                    file.unlink(missing_ok=True)  # before the lock ends: whoever opened it looks for a new one
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._owned = None, False

    def __enter__(self) -> "CellLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _flock(self) -> bool | None:
        """None: the file was removed in the meantime, so try again."""
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in NO_LOCKS:
                return self._create()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        try:
            current = os.stat(self.file, follow_symlinks=False)
        except FileNotFoundError:
            current = None
        if current is None or current.st_ino != os.fstat(descriptor).st_ino:
            os.close(descriptor)
            return None
        self._descriptor = descriptor
        return True

    def _create(self) -> bool | None:
        """The lock of file systems without locks. None: a dead holder's file was removed, so try again."""
        mine = self.held.with_name(f"{self.held.name}.{platform.node()}.{os.getpid()}")
        mine.write_text(json.dumps(me()), encoding="utf-8")
        try:
            os.link(mine, self.held)  # with its content in one step, and refused where the name is taken
        except FileExistsError:
            return self._take_over(aside=mine)
        finally:
            mine.unlink(missing_ok=True)
        self._owned = True
        return True

    def _take_over(self, *, aside: Path) -> bool | None:
        holder = read_holder(self.held)
        if holder is None:
            return None
        if not is_gone(holder):
            return False
        with suppress(FileNotFoundError):  # another was quicker
            os.replace(self.held, aside)
            if read_holder(aside) != holder:  # another has just taken over: put its file back
                os.link(aside, self.held)
        return None


def read_holder(file: Path) -> dict[str, Any] | None:
    """What a lock file says about its holder: nothing if it is damaged, None if it is not there."""
    try:
        return load_object(file)
    except UsageError:
        return {} if os.path.lexists(file) else None


def me() -> dict[str, Any]:
    """Which process this is, told apart from a later one of the same number."""
    return {"host": platform.node(), "pid": os.getpid(), "started": started(os.getpid())}


def is_gone(holder: dict[str, Any]) -> bool:
    """Whether a process has certainly ended; one on another host never counts as ended."""
    pid = holder.get("pid")
    if holder.get("host") != platform.node() or not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return holder.get("started") not in (None, started(pid))


def started(pid: int) -> str | None:
    """When a process of this host began, in ticks since the boot; None where that can't be told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def is_locked(path: Path) -> bool:
    """Whether some process is writing the cell in `path`; changes nothing."""
    lock = CellLock(path)
    holder = read_holder(lock.held)
    if holder is not None and not is_gone(holder):
        return True
    if fcntl is None:
        return False
    try:
        descriptor = os.open(lock.file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
