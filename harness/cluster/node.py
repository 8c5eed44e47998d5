"""What does a node of a Ray cluster do with a cell that it is handed?"""

import faulthandler
import importlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from algos.training.checkpoint import FILE
from filters.errors import UsageError
from harness.cells.cell import Cell, describe, make_filter, take_cell
from harness.cells.lock import CellLock
from harness.cells.provenance import provenance
from harness.cells.sources import project_sources
from harness.cells.trace import FOLDER
from leaderboard.runs.store import FILES, status

PREFIX = "filtergym-cell-"
SCRATCH_LOCK = re.compile(rf"\.({PREFIX}[0-9a-f]{{16}})\.lock")
TELL_EVERY = 0.5
"""seconds between two reports of one cell"""
TRACE = re.compile(rf"{FOLDER}/round-[0-9]{{4,9}}\.npz")


@dataclass(frozen=True)
class Order:
    """A cell for a node, and what the node has to agree with."""

    cell: Cell
    """with an absolute `out`"""
    number: int
    attempt: int
    """1 at first; one more after each loss"""
    folder: str
    """the driver's working folder: relative paths in filter specs count from there"""
    wanted: dict[str, Any]
    """the cell as the driver describes it"""
    versions: dict[str, str]
    """the driver's"""
    sources: dict[str, str]
    """this project's modules behind the cell, as the driver has them"""
    sign: str | None
    """a file that lies in a shared `out`; None where the files are collected"""
    jobs: int
    """the most cells that run at a time on the whole cluster"""
    cpus: float
    """CPUs set aside for a cell"""
    timeout: float | None
    """seconds that the cell may take"""


@dataclass(frozen=True)
class Reply:
    """What a node says to an order."""

    error: str | None = None
    """the sentence that says why the cell failed"""
    busy: bool = False
    """another sweep is running it"""
    fatal: str | None = None
    """why the whole sweep has to stop"""
    files: dict[str, bytes] = field(default_factory=dict)
    """the cell's files, where they are collected"""


def run_order(order: Order, board: Any) -> Reply:
    """Run a cell on one thread, in a process that Ray started.

    Args:
        order: what to run.
        board: handle of the `Board` actor.
    """
    import torch

    torch.set_num_threads(1)
    if os.path.isdir(order.folder):
        os.chdir(order.folder)
    try:
        refusal = unlike(order)
        if refusal:
            return Reply(fatal=f"a node of the Ray cluster ({address()}) {refusal}; what is complete stays so")
        tell = _teller(order, board)
        cell = replace(order.cell, jobs=max(1, min(order.jobs, int(node_cpus() / order.cpus))))
        return run_shared(cell, tell, order.timeout) if order.sign else run_apart(cell, tell, order.timeout)
    except UsageError as error:
        return Reply(fatal=f"on the Ray cluster's node {address()}: {error}")


def run_shared(cell: Cell, tell: Callable[[int, int], None], timeout: float | None) -> Reply:
    """Run a cell in its place on the shared disk; raises UsageError as `take_cell`."""
    with time_limit(timeout):
        outcome = take_cell(cell, tell)
    return Reply(error=outcome.error, busy=outcome.busy)


def run_apart(cell: Cell, tell: Callable[[int, int], None], timeout: float | None) -> Reply:
    """Run a cell in a folder of this node and send its files; raises UsageError as `take_cell`."""
    with scratch() as folder:
        cell = replace(cell, out=folder)
        with time_limit(timeout):
            outcome = take_cell(cell, tell)
        return Reply(error=outcome.error, files=collect(cell.path))


@contextmanager
def time_limit(timeout: float | None) -> Iterator[None]:
    """End this process after so many seconds; from C, as code that hangs may hold on to the interpreter."""
    if timeout is not None:
        faulthandler.dump_traceback_later(timeout, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def unlike(order: Order) -> str | None:
    """How this node differs from the driver, where that could change a result or lose it; or None."""
    if order.sign is not None and not (order.cell.out / order.sign).is_file():
        return f"does not see the driver's folder {order.cell.out}; choose an --out on a shared disk, or say --collect"
    here = versions()
    for name, wanted in order.versions.items():
        if here.get(name) != wanted and not (name == "code" and name not in here):  # no checkout: can't tell
            return f"has {name} {here.get(name, 'not at all')} where the driver has {wanted}; install the same there"
    found = describe(order.cell)
    different = sorted(key for key in order.wanted if found.get(key) != order.wanted[key])
    if different:
        return f"would run {order.cell} with other settings ({', '.join(different)}); install the same code there"
    sources = project_sources(order.cell.task.agent, make_filter(order.cell))
    edited = sorted(name for name in sources.keys() | order.sources if sources.get(name) != order.sources.get(name))
    return f"has another version of {', '.join(edited)}; install the same code there" if edited else None


@cache
def versions() -> dict[str, str]:
    """Of Python, of the code and of what can change a result; CPU and CUDA builds of one version are alike."""
    found = provenance("cpu", jobs=1)
    code = {"code": found["code"]["commit"]} if found["code"]["commit"] else {}
    packages = {name: version.partition("+")[0] for name, version in found["packages"].items()}
    return {"Python": found["python"]} | code | packages


@cache
def node() -> dict[str, Any]:
    """What Ray knows about the node that this process runs on."""
    ray: Any = importlib.import_module("ray")
    here = ray.get_runtime_context().get_node_id()
    return next(node for node in ray.nodes() if node["NodeID"] == here)


def node_cpus() -> float:
    """CPUs of this node."""
    return float(node()["Resources"].get("CPU", 1.0))


def address() -> str:
    """Where this node is in the cluster."""
    return str(node()["NodeManagerAddress"])


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one cell; folders whose process died before it could remove them are removed first."""
    home = Path(tempfile.gettempdir())
    for left in home.glob(f".{PREFIX}*.lock"):
        if found := SCRATCH_LOCK.fullmatch(left.name):
            _remove_if_abandoned(home / found[1])
    folder = home / f"{PREFIX}{secrets.token_hex(8)}"
    lock = CellLock(folder)
    lock.take()  # before the folder is there, so that nobody takes it for abandoned
    with lock:
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(folder: Path) -> None:
    lock = CellLock(folder)
    with suppress(OSError):  # somebody else's
        if lock.take():  # the system frees the lock of a process that died
            with lock:
                shutil.rmtree(folder, ignore_errors=True)


def collect(path: Path) -> dict[str, bytes]:
    """The files of an ended cell, as far as a run directory is made of them; of a failed one its checkpoint as well."""
    ended = status(path)
    names = [name for name in FILES if name != {"complete": "failure.json", "failed": "run.json"}.get(ended)]
    names += [FILE] if ended == "failed" else []
    names += sorted(f"{FOLDER}/{file.name}" for file in (path / FOLDER).glob("*.npz"))
    return {name: (path / name).read_bytes() for name in names if (path / name).is_file()}


def belongs(name: str, *, trace: bool) -> bool:
    """Whether a node may send a file of that name."""
    return name in (*FILES, FILE) or (trace and TRACE.fullmatch(name) is not None)


def _teller(order: Order, board: Any) -> Callable[[int, int], None]:
    told = time.monotonic()
    ray: Any = importlib.import_module("ray")
    with suppress(ray.exceptions.RayError):  # the board starts again; without it there is no progress to see
        # Waited for, so that the driver knows of no later start than the time limit does.
        ray.get(board.tell.remote(order.number, order.attempt, 0, 0))

    def tell(done: int, rounds: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_EVERY:
            told = time.monotonic()
            board.tell.remote(order.number, order.attempt, done, rounds)

    return tell
