"""How are cells spread over worker processes, so that none is lost when a worker or the parent dies?"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from filters.errors import TrainingError, UsageError
from harness.cells.cell import Cell, Outcome, Progress, record_failure, storage_error, take_cell
from harness.cells.lock import CellLock, is_locked
from leaderboard.runs.interrupts import ignore_interruptions, interruptions_held_back
from leaderboard.runs.store import status

START_UP = 120.0
"""seconds that a process may take until it begins with its first cell"""
PATIENCE = 0.5
"""seconds between two looks at a cell that another sweep is running"""

Run = Callable[[Cell, Progress], Outcome]
"""runs a cell in a worker; found by its name there"""


@dataclass(frozen=True)
class Event:
    """Something happened to a cell."""

    cell: Cell
    rounds_done: int = 0
    rounds: int = 0
    """0 at the start"""
    ended: bool = False
    error: str | None = None
    """why it failed, if it ended so"""
    busy: bool = False
    """another sweep is running it, so it was put aside"""
    fatal: str | None = None
    """why the whole sweep has to stop"""


OnEvent = Callable[[Event], None]


def run_cells(
    cells: Sequence[Cell], *, jobs: int, on_event: OnEvent, timeout: float | None = None, run: Run = take_cell
) -> None:
    """Run all cells, at most `jobs` at a time, in the order given. A cell that fails does not stop the others.

    Worker processes stay alive between cells. One that dies takes its cell with it as a recorded failure and is
    replaced; if the parent dies, they end too. Interrupting the parent ends them at once. A cell that another sweep is
    running is put aside and looked at again: it is run here only if the other sweep gives it up.

    Args:
        cells: what to run.
        jobs: workers.
        on_event: told of every cell's start, rounds and end.
        timeout: seconds after which a cell is ended and recorded as failed; None for no limit.
        run: what a worker does with a cell.

    Raises:
        UsageError: nothing more can be run, because the output folder can't be written to.
    """
    waiting, busy = deque(cells), list[Cell]()
    workers: list[Worker] = []
    try:
        workers += [Worker(run, timeout) for _ in range(min(jobs, len(cells)))]
        while waiting or busy or any(worker.cell for worker in workers):
            for worker in workers:
                if worker.cell is None and waiting:
                    worker.start(waiting.popleft(), on_event)
            for event in next_events(workers, PATIENCE if busy else None):
                if event.fatal:
                    raise UsageError(event.fatal)
                busy += [event.cell] if event.busy else []
                on_event(event)
            free = [cell for cell in busy if not is_locked(cell.path)] if not waiting else []
            busy = [cell for cell in busy if cell not in free]
            waiting.extend(free)
    finally:
        for worker in workers:
            worker.stop()


def next_events(workers: "Sequence[Worker]", patience: float | None) -> "list[Event]":
    """Wait until workers say something or one's time is up, at most for `patience` seconds; None waits for ever."""
    working = [worker for worker in workers if worker.cell]
    if not working:
        time.sleep(patience or 0.0)
        return []
    limits = [worker.seconds_left for worker in working if worker.seconds_left is not None]
    limits += [] if patience is None else [patience]
    ready = wait([worker.connection for worker in working], min(limits, default=None))
    events = [worker.receive() for worker in working if worker.connection in ready]
    return events + [worker.expire() for worker in working if worker.cell and worker.seconds_left == 0]


class Worker:
    """A process that runs one cell after another, each for at most `timeout` seconds."""

    def __init__(self, run: Run = take_cell, timeout: float | None = None) -> None:
        self.cell: Cell | None = None
        self._run, self._timeout = run, timeout
        self._rounds_done: int | None = None
        self._began = 0.0
        self._open()

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self._run), daemon=True)
        with interruptions_held_back():
            self.process.start()
        theirs.close()

    def start(self, cell: Cell, on_event: OnEvent) -> None:
        """Hand the process a cell."""
        self.cell, self._rounds_done, self._began = cell, None, time.monotonic() + START_UP
        on_event(Event(cell))
        with suppress(OSError):  # it has died: `receive` sees that next
            self.connection.send(cell)

    @property
    def seconds_left(self) -> float | None:
        """Until the cell's time is up, its process's start left out; None where it has no limit."""
        return None if self._timeout is None else max(0.0, self._began + self._timeout - time.monotonic())

    def receive(self) -> Event:
        """What the process says next."""
        try:
            event: Event = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
            return self._bury(f"the worker process died ({how}), perhaps out of memory")
        self._began = min(self._began, time.monotonic())
        self._rounds_done = event.rounds_done or self._rounds_done
        if event.ended:
            self.cell = None
        return event

    def expire(self) -> Event:
        """End the process, because its cell takes too long."""
        self.process.kill()
        self.process.join()
        assert self._timeout is not None
        return self._bury(took_too_long(self._timeout))

    def _bury(self, why: str) -> Event:
        """Record the cell of a process that died and start another process."""
        assert self.cell is not None
        cell, self.cell = self.cell, None
        self.connection.close()
        self._open()
        return bury(cell, why, self._rounds_done)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def took_too_long(timeout: float) -> str:
    """Why a cell failed whose time was up."""
    return f"it took longer than the {timeout:g} seconds of --cell-timeout"


def bury(cell: Cell, why: str, rounds_done: int | None) -> Event:
    """Record the cell of a process that died; raises StorageError if that can't be written."""
    lock = CellLock(cell.path)
    try:
        if not lock.take():
            return Event(cell, ended=True, busy=True)
        with lock:
            if status(cell.path) == "complete":  # it died after its last word was written
                return Event(cell, ended=True)
            return Event(cell, ended=True, error=record_failure(cell, TrainingError(why), rounds_done))
    except OSError as error:
        raise storage_error(cell, error) from error


def serve(connection: "Connection[Any, Any]", run: Run) -> None:
    """Run in a worker process: take cells, run them on one thread, report; ends with the parent."""
    ignore_interruptions()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.excepthook = _say_nothing_of_disks
    import torch

    torch.set_num_threads(1)
    while True:
        try:
            cell: Cell = connection.recv()
        except EOFError:
            return
        _tell(connection, Event(cell))  # its time begins to count
        _tell(connection, _attempt(cell, connection, run))


def _attempt(cell: Cell, connection: "Connection[Any, Any]", run: Run) -> Event:
    try:
        outcome = run(cell, lambda done, rounds: _tell(connection, Event(cell, done, rounds)))
    except UsageError as error:
        return Event(cell, ended=True, fatal=str(error))
    return Event(cell, ended=True, error=outcome.error, busy=outcome.busy)


def _tell(connection: "Connection[Any, Any]", event: Event) -> None:
    try:
        connection.send(event)
    except OSError:  # the parent has gone; that is no failure of the cell
        os._exit(1)


def _say_nothing_of_disks(failed: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread of its own; on a full disk the main thread says so."""
    if not isinstance(failed.exc_value, OSError):
        threading.__excepthook__(failed)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
