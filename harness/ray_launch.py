"""How are the same cells spread over a Ray cluster, so that none is lost with its node?"""

import os
import secrets
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filters.errors import TrainingError, UsageError
from harness import machine
from harness.cell import Cell, describe, record_failure
from harness.launch import Event
from harness.ray_board import Board
from harness.ray_cluster import Cluster, brief, connected, warn_if_nothing_fits
from harness.ray_node import Order, Outcome, packages, run_order
from harness.store import FILES

ATTEMPTS = 4
"""how often a cell is started whose node or process is lost again and again"""
POLL_SECONDS = 0.5
ENDINGS = ("run.json", "failure.json")
"""the files that say that a cell has ended"""


def run_cells(cells: Sequence[Cell], *, jobs: int, on_event: Callable[[Event], None], cluster: Cluster) -> None:
    """Run all cells on a Ray cluster, at most `jobs` at a time; the counterpart of `harness.launch.run_cells`.

    A cell that fails does not stop the others. One that is lost with its node or its process starts again elsewhere,
    up to `ATTEMPTS` times in all. Interrupting the driver, or its death, ends all cells under way.

    Raises:
        UsageError: if Ray is missing, the cluster can't be reached, or a node's installation or folder is not the
            driver's.
    """
    with connected(cluster, jobs) as ray, shared_sign(cells, cluster) as sign:
        # No ray.cancel on the way out: a task that ends at that moment makes Ray abort this process. Ending the
        # connection ends the tasks as well.
        _Sweep(ray, cells, jobs=jobs, on_event=on_event, cluster=cluster, sign=sign).run()


class _Sweep:
    """The cells of one call: waiting, under way, ended."""

    def __init__(
        self,
        ray: Any,
        cells: Sequence[Cell],
        *,
        jobs: int,
        on_event: Callable[[Event], None],
        cluster: Cluster,
        sign: str | None,
    ) -> None:
        self._ray, self._cells, self._on_event, self._cluster, self._sign = ray, cells, on_event, cluster, sign
        self._jobs = jobs
        self._waiting = deque((number, 1) for number in range(len(cells)))
        self._under_way: dict[Any, tuple[int, int]] = {}
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._board = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(Board).remote()
        self._run_order = ray.remote(max_retries=0, scheduling_strategy="SPREAD", **resources(cells, cluster))(
            run_order
        )

    def run(self) -> None:
        """Until every cell is complete or failed."""
        warn_if_nothing_fits(self._ray, resources(self._cells, self._cluster))
        while self._waiting or self._under_way:
            while self._waiting and len(self._under_way) < self._jobs:
                self._submit(*self._waiting.popleft())
            ended, _ = self._ray.wait(list(self._under_way), timeout=POLL_SECONDS)
            self._pass_on_news()
            for task in ended:
                self._end(task)

    def _submit(self, number: int, attempt: int) -> None:
        cell = self._cells[number]
        order = Order(
            cell=replace(cell, out=cell.out.absolute()),
            number=number,
            attempt=attempt,
            folder=os.getcwd(),
            wanted=describe(cell),
            packages=packages(),
            sign=self._sign,
            jobs=self._jobs,
            cpus=self._cluster.cpus,
        )
        self._under_way[self._run_order.remote(order, self._board)] = (number, attempt)

    def _pass_on_news(self) -> None:
        latest = set(self._under_way.values())
        try:
            news = self._ray.get(self._board.take.remote())
        except self._ray.exceptions.RayError:  # the board starts again
            return
        for number, (attempt, done, rounds) in news.items():
            if (number, attempt) in latest:
                self._on_event(Event(self._cells[number], done, rounds))

    def _end(self, task: Any) -> None:
        number, attempt = self._under_way.pop(task)
        cell, errors = self._cells[number], self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(task)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise UsageError(
                f"a node can't run cells ({brief(error)}); all need the same FilterGym, filters and a writable folder"
            ) from error
        except errors.RayError as error:
            self._lost(number, attempt, error)
            return
        if outcome.refusal:
            raise UsageError(f"a node of the Ray cluster {outcome.refusal}; what is complete stays so")
        if self._cluster.collect:
            write_collected(cell.path, outcome.files)
        self._on_event(Event(cell, ended=True, error=outcome.error))

    def _lost(self, number: int, attempt: int, error: Exception) -> None:
        cell = self._cells[number]
        what = "node" if isinstance(error, self._ray.exceptions.NodeDiedError) else "process"
        if attempt == ATTEMPTS:
            reason = TrainingError(f"its {what} was lost {attempt} times, perhaps out of memory ({brief(error)})")
            self._on_event(Event(cell, ended=True, error=record_failure(cell, reason, None)))
            return
        print(f"{cell}: its {what} was lost; starting again ({attempt + 1} of {ATTEMPTS})", file=sys.stderr)
        self._on_event(Event(cell))
        self._waiting.appendleft((number, attempt + 1))


def resources(cells: Sequence[Cell], cluster: Cluster) -> dict[str, float]:
    """What Ray sets aside for a cell."""
    cuda = any(cell.device == "cuda" for cell in cells)
    gpus = {"num_gpus": cluster.gpus} if cuda else {}
    return {"num_cpus": cluster.cpus, "memory": int(machine.CELL_BYTES)} | gpus


def write_collected(path: Path, files: dict[str, bytes]) -> None:
    """Make the run directory of a cell from the files that a node sent, the one that completes it last.

    Raises:
        UsageError: if a name is none of a run directory's.
        OSError: if the folder can't be written to.
    """
    strange = sorted(set(files) - set(FILES))
    if strange:  # a name could lead out of the folder
        raise UsageError(f"a node sent files that don't belong into a run directory ({', '.join(strange)})")
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True)
    for name in sorted(files, key=ENDINGS.__contains__):
        partial = path / f".{name}.{os.getpid()}.tmp"
        with partial.open("wb") as file:
            file.write(files[name])
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path / name)


@contextmanager
def shared_sign(cells: Sequence[Cell], cluster: Cluster) -> Iterator[str | None]:
    """The name of a file in `out` by which nodes tell that they see the same folder; None where files are collected."""
    if cluster.collect:
        yield None
        return
    sign = cells[0].out / f".shared-{secrets.token_hex(8)}"
    sign.touch()
    try:
        yield sign.name
    finally:
        sign.unlink(missing_ok=True)
