"""How much can run side by side on this machine?"""

import os
from pathlib import Path

CELL_BYTES = 1.2 * 2**30
"""memory that one cell may need, the packages included"""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> float | None:
    """Bytes of memory of the machine, or None where that can't be told."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def available_memory() -> float | None:
    """Bytes that can be taken without swapping, or None where that can't be told."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return memory()


def jobs() -> int:
    """Cells to run side by side: one a core, as far as memory allows."""
    free = available_memory()
    return max(1, min(cores(), cores() if free is None else int(free / CELL_BYTES)))
