"""How are the same cells spread over a Ray cluster, so that none is lost with its node?"""

import os
import secrets
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from filters.errors import UsageError
from harness.cells.cell import Cell, describe, make_filter, settled, storage_error
from harness.cells.lock import CellLock, is_locked
from harness.cells.sources import project_sources
from harness.cluster.board import Board, News
from harness.cluster.cluster import Cluster, brief, connected, warn_if_nothing_fits
from harness.cluster.node import Order, Reply, belongs, run_order, versions
from harness.sweeps import machine
from harness.sweeps.launch import Event, OnEvent, bury, took_too_long
from leaderboard.runs.store import write_file

ATTEMPTS = 4
"""how often a cell is started whose node or process is lost again and again"""
POLL_SECONDS = 0.5
MOST_LOCKS = 500
"""cells handed out at a time where each keeps a lock file open here; systems allow 1,024 open files or more"""
ENDINGS = ("run.json", "failure.json")
"""the files that say that a cell has ended"""

Try = tuple[int, int]
"""a cell's number and the attempt, from 1 on"""


def run_cells(
    cells: Sequence[Cell], *, jobs: int, on_event: OnEvent, timeout: float | None = None, cluster: Cluster
) -> None:
    """Run all cells on a Ray cluster, at most `jobs` at a time; the counterpart of `harness.sweeps.launch.run_cells`.

    A cell that fails does not stop the others. One that is lost with its node or its process starts again elsewhere,
    up to `ATTEMPTS` times in all; one that is another sweep's is put aside and looked at again. Interrupting the
    driver, or its death, ends all cells under way.

    Args:
        cells: what to run.
        jobs: cells at a time.
        on_event: told of every cell's start, rounds and end.
        timeout: seconds after which a cell is ended and recorded as failed; None for no limit.
        cluster: where, and with what.

    Raises:
        UsageError: if Ray is missing, the cluster can't be reached, a node's installation or folder is not the
            driver's, or the output folder can't be written to.
    """
    with connected(cluster, jobs) as ray, shared_sign(cells, cluster) as sign:
        # No ray.cancel on the way out: a task that ends at that moment makes Ray abort this process. Ending the
        # connection ends the tasks as well.
        Sweep(ray, cells, jobs=jobs, on_event=on_event, timeout=timeout, cluster=cluster, sign=sign).run()


class Sweep:
    """The cells of one call: waiting, under way, put aside, ended.

    Whoever writes a cell's folder holds its lock: the node on a shared disk, the driver where files are collected.
    """

    def __init__(
        self,
        ray: Any,
        cells: Sequence[Cell],
        *,
        jobs: int,
        on_event: OnEvent,
        timeout: float | None,
        cluster: Cluster,
        sign: str | None,
    ) -> None:
        self._ray, self._cells, self._on_event, self._cluster, self._sign = ray, cells, on_event, cluster, sign
        self._jobs, self._timeout = jobs, timeout
        self._waiting = deque((number, 1) for number in range(len(cells)))
        self._under_way: dict[Any, Try] = {}
        self._aside: list[Try] = []
        self._locks: dict[int, CellLock] = {}
        self._heard: dict[Try, News] = {}
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._board = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(Board).remote()
        self._run_order = ray.remote(max_retries=0, scheduling_strategy="SPREAD")(run_order)

    def run(self) -> None:
        """Until every cell is complete or failed."""
        for device in sorted({cell.device for cell in self._cells}):
            warn_if_nothing_fits(self._ray, resources(device, self._cluster))
        most = min(self._jobs, MOST_LOCKS) if self._cluster.collect else self._jobs
        try:
            while self._waiting or self._aside or self._under_way:
                while self._waiting and len(self._under_way) < most:
                    self._begin(*self._waiting.popleft())
                ended = self._wait()
                self._pass_on_news()
                for task in ended:
                    self._end(task)
                self._look_again()
        finally:
            for number in list(self._locks):
                self._release(number)

    def _begin(self, number: int, attempt: int) -> None:
        """Hand out a cell, unless another sweep is at it or has settled it since."""
        cell, lock = self._cells[number], CellLock(self._cells[number].path)
        try:
            if not lock.take():
                self._put_aside(number, attempt)
                return
            self._locks[number] = lock
            outcome = settled(cell)
        except OSError as error:
            raise storage_error(cell, error) from error
        if outcome or not self._cluster.collect:
            self._release(number)
        if outcome:
            self._on_event(Event(cell, ended=True, error=outcome.error))
        else:
            self._submit(number, attempt)

    def _submit(self, number: int, attempt: int) -> None:
        cell = self._cells[number]
        order = Order(
            cell=replace(cell, out=cell.out.absolute()),
            number=number,
            attempt=attempt,
            folder=os.getcwd(),
            wanted=describe(cell),
            versions=versions(),
            sources=project_sources(cell.task.agent, make_filter(cell)),
            sign=self._sign,
            jobs=self._jobs,
            cpus=self._cluster.cpus,
            timeout=self._timeout,
        )
        start = self._run_order.options(**resources(cell.device, self._cluster)).remote
        self._under_way[start(order, self._board)] = (number, attempt)

    def _wait(self) -> list[Any]:
        """The tasks that have ended, some time later at most."""
        if not self._under_way:
            time.sleep(POLL_SECONDS if self._aside else 0.0)
            return []
        ended: list[Any] = self._ray.wait(list(self._under_way), timeout=POLL_SECONDS)[0]
        return ended

    def _pass_on_news(self) -> None:
        latest = set(self._under_way.values())
        try:
            news: dict[int, News] = self._ray.get(self._board.take.remote())
        except self._ray.exceptions.RayError:  # the board starts again
            return
        for number, heard in news.items():
            attempt = (number, heard.attempt)
            if attempt in latest:
                before = self._heard.get(attempt, heard)
                self._heard[attempt] = replace(heard, began=min(heard.began, before.began))
                self._on_event(Event(self._cells[number], heard.done, heard.rounds))

    def _end(self, task: Any) -> None:
        number, attempt = self._under_way.pop(task)
        cell, errors = self._cells[number], self._ray.exceptions
        try:
            reply: Reply = self._ray.get(task)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise UsageError(
                f"a node can't run cells ({brief(error)}); all need the same FilterGym, filters and a writable folder"
            ) from error
        except errors.RayError as error:
            self._lost(number, attempt, error)
            return
        if reply.fatal:
            raise UsageError(reply.fatal)
        if reply.busy:
            self._put_aside(number, attempt)
            return
        if self._cluster.collect:
            write_collected(cell, reply.files)
        self._release(number)
        self._on_event(Event(cell, ended=True, error=reply.error))

    def _lost(self, number: int, attempt: int, error: Exception) -> None:
        """Start a cell again whose process has ended, or record it if its time or its attempts are used up."""
        self._release(number)
        heard = self._heard.get((number, attempt))
        what = "node" if isinstance(error, self._ray.exceptions.NodeDiedError) else "process"
        if self._timeout is not None and heard and time.monotonic() - heard.began >= self._timeout:
            self._bury(number, attempt, took_too_long(self._timeout))
        elif attempt == ATTEMPTS:
            self._bury(number, attempt, f"its {what} was lost {attempt} times, perhaps out of memory ({brief(error)})")
        else:
            cell = self._cells[number]
            print(f"{cell}: its {what} was lost; starting again ({attempt + 1} of {ATTEMPTS})", file=sys.stderr)
            self._on_event(Event(cell))
            self._waiting.appendleft((number, attempt + 1))

    def _bury(self, number: int, attempt: int, why: str) -> None:
        heard = self._heard.get((number, attempt))
        event = bury(self._cells[number], why, heard.done or None if heard else None)
        if event.busy:
            self._put_aside(number, attempt)
        else:
            self._on_event(event)

    def _put_aside(self, number: int, attempt: int) -> None:
        cell = self._cells[number]
        self._release(number)
        self._on_event(Event(cell))
        self._on_event(Event(cell, ended=True, busy=True))
        self._aside.append((number, attempt))

    def _look_again(self) -> None:
        """Take up cells that other sweeps have left, once nothing else waits."""
        free = [] if self._waiting else [each for each in self._aside if not is_locked(self._cells[each[0]].path)]
        self._aside = [each for each in self._aside if each not in free]
        self._waiting.extend(free)

    def _release(self, number: int) -> None:
        if number in self._locks:
            self._locks.pop(number).release()


def resources(device: str, cluster: Cluster) -> dict[str, float]:
    """What Ray sets aside for a cell on a device."""
    gpus = {"num_gpus": cluster.gpus} if device == "cuda" else {}
    return {"num_cpus": cluster.cpus, "memory": int(machine.CELL_BYTES)} | gpus


def write_collected(cell: Cell, files: dict[str, bytes]) -> None:
    """Make the run directory of a cell from the files that a node sent, the one that completes it last.

    Raises:
        StorageError: if the folder can't be written to.
        UsageError: if a name is none of a run directory's.
    """
    strange = sorted(name for name in files if not belongs(name, trace=cell.trace))
    if strange:  # a name could lead out of the folder
        raise UsageError(f"a node sent files that don't belong into a run directory ({', '.join(strange)})")
    try:
        if cell.path.exists():
            shutil.rmtree(cell.path)
        cell.path.mkdir(parents=True)
        for name in sorted(files, key=ENDINGS.__contains__):
            (cell.path / name).parent.mkdir(exist_ok=True)
            write_file(cell.path / name, files[name])
    except OSError as error:
        raise storage_error(cell, error) from error


@contextmanager
def shared_sign(cells: Sequence[Cell], cluster: Cluster) -> Iterator[str | None]:
    """The name of a file in `out` by which nodes tell that they see the same folder; None where files are collected."""
    if cluster.collect:
        yield None
        return
    sign = cells[0].out / f".shared-{secrets.token_hex(8)}"
    try:
        sign.touch()
    except OSError as error:
        raise storage_error(cells[0], error) from error
    try:
        yield sign.name
    finally:
        with suppress(OSError):
            sign.unlink(missing_ok=True)
