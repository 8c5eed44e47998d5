"""How does a terminal's Ctrl-C, which reaches every process of a command, end it with one sentence?"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interruptions_held_back() -> Iterator[None]:
    """Start worker processes in here: no Ctrl-C interrupts their imports. This process gets it right after.

    The workers' first step has to be `ignore_interruptions`.
    """
    # Left to the first worker's start, the tracker of multiprocessing would let Ctrl-C through again as it starts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interruptions() -> None:
    """In a worker: Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
