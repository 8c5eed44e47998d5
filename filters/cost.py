"""What does a call cost, in seconds and in memory?"""

import ctypes
import os
import sys
import time
from collections.abc import Callable


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Least seconds of `repeats` calls after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_memory(work: Callable[[], object]) -> float:
    """MiB of memory that a call needs on top of what the process holds; NaN where that can't be told (not Linux).

    Measured in a fork of the process, which must use one thread. A first call touches the code and is not counted; what
    it freed is given back before the second.
    """
    if sys.platform != "linux":
        return float("nan")
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, str(_measure(work)).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return int(answer) / 1024 if answer else float("nan")


def _measure(work: Callable[[], object]) -> int:
    work()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak starts anew
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))
