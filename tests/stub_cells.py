"""What a worker may do with a cell, without training: one behaviour for each seed."""

import os
import signal
import time

from filters.errors import UsageError
from harness.cells.cell import Cell, Outcome, Progress


def ends(cell: Cell, progress: Progress) -> Outcome:
    """Report a round and end."""
    progress(1, 1)
    return Outcome()


def by_seed(cell: Cell, progress: Progress) -> Outcome:
    """End, fail, hang in the second round, or die in the third."""
    if cell.seed == 1:
        return Outcome(error="it failed")
    if cell.seed == 2:
        progress(1, 5)
        time.sleep(600)
    if cell.seed == 3:
        progress(2, 5)
        os.kill(os.getpid(), signal.SIGKILL)
    return ends(cell, progress)


def full_disk(cell: Cell, progress: Progress) -> Outcome:
    """Fail for a reason that no other cell would be spared."""
    raise UsageError("can't write to runs (No space left on device)")


def busy_at_first(cell: Cell, progress: Progress) -> Outcome:
    """Be another sweep's until its lock is gone; `mark` tells whether it was asked before."""
    mark = cell.out / f"asked-{cell.seed}"
    if mark.exists():
        return Outcome()
    mark.touch()
    return Outcome(busy=True)
