"""How are the same cells spread over a Ray cluster, so that none is lost with its node?"""

import importlib
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filters.errors import TrainingError, UsageError
from harness import machine
from harness.cell import Cell, describe, record_failure
from harness.launch import Event
from harness.ray_node import Board, Order, Outcome, packages, run_order
from harness.store import FILES

ATTEMPTS = 4
"""how often a cell is started whose node or process is lost again and again"""
POLL_SECONDS = 0.5
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Cluster:
    """Where cells run, what each of them takes, and how its files come back."""

    address: str = "local"
    """`local`, `auto` or `host:port`"""
    collect: bool = False
    """send the files back to the driver instead of writing them to a shared folder"""
    cpus: float = 1.0
    """CPUs of a cell"""
    gpus: float = 0.25
    """GPUs of a cell on CUDA; a fraction lets several share one"""


def run_cells(cells: Sequence[Cell], *, jobs: int, on_event: Callable[[Event], None], cluster: Cluster) -> None:
    """Run all cells on a Ray cluster, at most `jobs` at a time; the counterpart of `harness.launch.run_cells`.

    A cell that fails does not stop the others. One that is lost with its node or its process starts again elsewhere,
    up to `ATTEMPTS` times in all. Interrupting the driver, or its death, ends all cells under way.

    Raises:
        UsageError: if Ray is missing, the cluster can't be reached, or a node's installation or folder is not the
            driver's.
    """
    with connected(cluster, jobs) as ray, shared_sign(cells, cluster) as sign:
        sweep = _Sweep(ray, cells, jobs=jobs, on_event=on_event, cluster=cluster, sign=sign)
        try:
            sweep.run()
        finally:
            sweep.cancel()


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
        self._board = ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()
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

    def cancel(self) -> None:
        """Interrupt what is under way and give it a moment to tidy up; ending the connection ends the rest."""
        for task in self._under_way:
            self._ray.cancel(task)
        if self._under_way:
            self._ray.wait(list(self._under_way), num_returns=len(self._under_way), timeout=2)

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
        for number, (attempt, done, rounds) in self._ray.get(self._board.take.remote()).items():
            if (number, attempt) in latest:
                self._on_event(Event(self._cells[number], done, rounds))

    def _end(self, task: Any) -> None:
        number, attempt = self._under_way.pop(task)
        cell, errors = self._cells[number], self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(task)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise UsageError(
                f"a node can't run cells ({_brief(error)}); install the same FilterGym and filters on all nodes"
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
            reason = TrainingError(f"its {what} was lost {attempt} times, perhaps out of memory ({_brief(error)})")
            self._on_event(Event(cell, ended=True, error=record_failure(cell, reason, None)))
            return
        print(f"{cell}: its {what} was lost; starting again ({attempt + 1} of {ATTEMPTS})", file=sys.stderr)
        self._on_event(Event(cell))
        self._waiting.appendleft((number, attempt + 1))


def resources(cells: Sequence[Cell], cluster: Cluster) -> dict[str, float]:
    """What Ray sets aside for a cell."""
    cuda = any(cell.device == "cuda" for cell in cells)
    gpus = {"num_gpus": cluster.gpus} if cuda else {}
    return {"num_cpus": cluster.cpus, "memory": machine.CELL_BYTES} | gpus


def write_collected(path: Path, files: dict[str, bytes]) -> None:
    """Make the run directory of a cell from the files that a node sent, the one that completes it last.

    Raises:
        UsageError: if a name is none of a run directory's.
        OSError: if the folder can't be written to.
    """
    strange = sorted(set(files) - set(FILES))
    if strange:
        raise UsageError(f"a node sent files that don't belong into a run directory ({', '.join(strange)})")
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True)
    for name in [name for name in FILES if name in files]:  # FILES ends with those that say how the cell ended
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


@contextmanager
def connected(cluster: Cluster, jobs: int) -> Iterator[Any]:
    """The module `ray`, connected to the cluster; leaving ends the connection, and with it all that still runs.

    Raises:
        UsageError: if Ray is missing or the cluster can't be reached.
    """
    ray = import_ray(cluster.address)
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    before = signal.getsignal(signal.SIGTERM)  # Ray puts its own handler there
    folder = None
    try:
        if cluster.address == "local":
            folder = tempfile.mkdtemp(prefix="ray-")
            size = {"num_cpus": jobs * cluster.cpus, "object_store_memory": 128 * 2**20}
            _init(ray, address="local", include_dashboard=False, _temp_dir=folder, **size, **quiet)
        else:
            check_reachable(cluster.address)
            _init(ray, address=cluster.address, **quiet)
        signal.signal(signal.SIGTERM, before)
        yield ray
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def import_ray(address: str) -> Any:
    """The module `ray`, without its reports of usage and its log lines; raises UsageError where it is missing."""
    settings = {"RAY_USAGE_STATS_ENABLED": "0"}
    settings |= {"RAY_DEDUP_LOGS_SKIP_REGEX": "."}  # what a dying node says would land in our output
    if address == "local":  # without a token in the environment Ray writes one into the home folder
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    else:
        settings |= {"RAY_gcs_server_port_wait_time_s": "5"}
    for name, value in settings.items():  # read while Ray is imported
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise UsageError("--launcher ray needs the extra ray: pip install 'filtergym[ray]'") from error
    return ray


def check_reachable(address: str) -> None:
    """Raise UsageError unless `address` is `auto` or somebody listens there."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise UsageError(f"--ray-address takes local, auto or host:port (the port is 6379 by default), got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"nobody answers at --ray-address {address} ({error}); is `ray start --head` running?"
        ) from error


def warn_if_nothing_fits(ray: Any, wanted: dict[str, float]) -> None:
    """Say so if no node is big enough for a cell: a cluster that grows may get one, another never will."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(node.get(names[key], 0.0) >= amount for key, amount in wanted.items()) for node in nodes):
        return
    needs = ", ".join(
        f"{amount / 2**30:.1f} GiB" if key == "memory" else f"{amount:g} {names[key]}" for key, amount in wanted.items()
    )
    print(f"no node of the cluster has room for a cell ({needs}); waiting for one (Ctrl-C ends)", file=sys.stderr)


def _init(ray: Any, **settings: Any) -> None:
    try:
        ray.init(**settings)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        address = settings["address"]
        if any(isinstance(cause, ray.exceptions.AuthenticationError) for cause in _causes(error)) or "AuthToken" in str(
            _causes(error)
        ):
            raise UsageError(
                f"the Ray cluster at {address} asks for its token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as there"
            ) from error
        raise UsageError(
            f"can't use the Ray cluster at --ray-address {address} ({_brief(error)}); run this on one of its nodes, "
            "with the same versions of Ray and Python"
        ) from error


@contextmanager
def _hushed() -> Iterator[None]:
    """Without what Ray's C++ part writes to stderr before its level of logging counts."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _causes(error: BaseException) -> list[BaseException]:
    return [error] if error.__cause__ is None else [error, *_causes(error.__cause__)]


def _brief(error: Exception) -> str:
    """The first line, or the last one where that is a traceback's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any("Traceback" in line or "ray::" in line for line in lines) else lines[0]
