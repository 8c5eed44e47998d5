"""How are cells spread over worker processes, so that none is lost when a worker or the parent dies?"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from filters.errors import TrainingError
from harness.cell import Cell, record_failure, run_cell


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


def run_cells(cells: Sequence[Cell], *, jobs: int, on_event: Callable[[Event], None]) -> None:
    """Run all cells, at most `jobs` at a time, in the order given. A cell that fails does not stop the others.

    Worker processes stay alive between cells. One that dies takes its cell with it as a recorded failure and is
    replaced; if the parent dies, they end too. Interrupting the parent ends them at once.
    """
    waiting = list(reversed(cells))
    workers: list[Worker] = []
    try:
        for _ in range(min(jobs, len(cells))):
            workers.append(Worker())
            workers[-1].start(waiting.pop(), on_event)
        while any(worker.cell for worker in workers):
            ready = wait([worker.connection for worker in workers if worker.cell])
            for worker in [worker for worker in workers if worker.connection in ready]:
                ended = worker.receive(on_event)
                if ended and waiting:
                    worker.start(waiting.pop(), on_event)
    finally:
        for worker in workers:
            worker.stop()


class Worker:
    """A process that runs one cell after another."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self._open()

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        # A terminal's Ctrl-C reaches the children too. Held back until `serve` ignores it, it can't interrupt their
        # imports; the parent gets it right after the start.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def start(self, cell: Cell, on_event: Callable[[Event], None]) -> None:
        """Hand the process a cell."""
        self.cell = cell
        on_event(Event(cell))
        self.connection.send(cell)

    def receive(self, on_event: Callable[[Event], None]) -> bool:
        """Pass on what the process says; True if its cell has ended."""
        assert self.cell is not None
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionError):
            event = Event(self.cell, ended=True, error=self._bury())
        on_event(event)
        if event.ended:
            self.cell = None
        return event.ended

    def _bury(self) -> str:
        """Record the cell of a process that died and start another process."""
        assert self.cell is not None
        self.process.join()
        code = self.process.exitcode
        how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        self.connection.close()
        self._open()
        return record_failure(self.cell, TrainingError(f"the worker process died ({how}), perhaps out of memory"), None)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.join(timeout=2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def serve(connection: "Connection[Any, Any]") -> None:
    """Run in a worker process: take cells, run them on one thread, report; ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(1)
    while True:
        try:
            cell: Cell = connection.recv()
        except EOFError:
            return
        error = run_cell(cell, lambda done, rounds: connection.send(Event(cell, done, rounds)))  # noqa: B023
        connection.send(Event(cell, ended=True, error=error))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
