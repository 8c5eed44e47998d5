"""How do a command's jobs share the cores, and how long will they still take?"""

import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from typing import Any, TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from filters.errors import UsageError
from harness.sweeps import machine
from leaderboard.runs.interrupts import ignore_interruptions, interruptions_held_back

J = TypeVar("J")
R = TypeVar("R")
Report = Callable[[float, str], None]
"""called with the share of the job that is done and what it is at"""

BETWEEN_LINES = 5.0
"""seconds between two lines of progress where there is no terminal"""
_reports: Any = None


class Countdown:
    """A bar on a terminal, elsewhere a line every few seconds: how much is done and how long the rest takes."""

    def __init__(self, console: Console, jobs: int) -> None:
        self._console, self._shares = console, [0.0] * jobs
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
        self._bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self._bar = self._bars.add_task("starting", total=1.0)
        self._began = self._said = time.monotonic()

    def __enter__(self) -> "Countdown":
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._bars.stop()

    def show(self, job: int, share: float, text: str) -> None:
        """Take in how far a job is."""
        self._shares[job] = share
        done = sum(self._shares) / len(self._shares)
        self._bars.update(self._bar, completed=done, description=text)
        now = time.monotonic()
        if not self._console.is_terminal and done > 0 and now - self._said >= BETWEEN_LINES:
            self._said = now
            left = (now - self._began) * (1 - done) / done
            line = f"[{done:4.0%}] {text} (about {left / 60:.1f} min left)"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def run_side_by_side(
    work: Callable[[J, Report], R], items: Sequence[J], *, jobs: int, console: Console | None = None
) -> list[R]:
    """What `work` makes of each item, in their order, on at most `jobs` processes of one thread each.

    With one item or one job everything happens in this process. The first failure, an interruption or the death of
    this process ends all.

    Args:
        work: a module's function, so that another process can find it.
        items: what to work on.
        jobs: processes at most; 0: one a core, as far as memory allows.
        console: where progress goes.
    """
    if jobs < 0:
        raise UsageError(f"--jobs must be 0 (one a core) or more, got {jobs}")
    jobs = jobs or machine.jobs()
    console = console or Console(width=None if sys.stdout.isatty() else 110)
    with Countdown(console, max(len(items), 1)) as countdown:
        if min(jobs, len(items)) <= 1:
            torch.set_num_threads(1)
            return [work(item, _reporter(countdown.show, i)) for i, item in enumerate(items)]
        return _run_in_pool(work, items, min(jobs, len(items)), countdown)


def _run_in_pool(work: Callable[[J, Report], R], items: Sequence[J], jobs: int, countdown: Countdown) -> list[R]:
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    pool = ProcessPoolExecutor(jobs, context, initializer=_open_worker, initargs=(reports,))
    try:
        with interruptions_held_back():
            futures = [pool.submit(_work, work, i, item) for i, item in enumerate(items)]
        waiting = set(futures)
        while waiting:
            ended, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
            while not reports.empty():
                countdown.show(*reports.get())
            for future in ended:
                future.result()
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()


def _reporter(report: Callable[[int, float, str], None], job: int) -> Report:
    return lambda share, text: report(job, share, text)


def _open_worker(reports: Any) -> None:
    global _reports
    ignore_interruptions()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _reports = reports


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _work(work: Callable[[J, Report], R], job: int, item: J) -> R:
    return work(item, _reporter(lambda *report: _reports.put(report), job))
