"""What does a node of a Ray cluster do with a cell that it is handed?"""

import fcntl
import importlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.cell import Cell, describe, run_cell
from harness.provenance import provenance
from harness.store import FILES, status

PREFIX = "filtergym-"
TELL_EVERY = 0.5
"""seconds between two reports of one cell"""


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
    packages: dict[str, str]
    """the driver's versions"""
    sign: str | None
    """a file that lies in a shared `out`; None where the files are collected"""
    jobs: int
    """the most cells that run at a time on the whole cluster"""
    cpus: float
    """CPUs set aside for a cell"""


@dataclass(frozen=True)
class Outcome:
    """What came of an order."""

    error: str | None = None
    """the sentence that says why the cell failed"""
    refusal: str | None = None
    """why this node can't run cells of this sweep at all"""
    files: dict[str, bytes] = field(default_factory=dict)
    """the cell's files, where they are collected"""


def run_order(order: Order, board: Any) -> Outcome:
    """Run a cell on one thread, in a process that Ray started.

    Args:
        order: what to run.
        board: handle of the `Board` actor.
    """
    import torch

    torch.set_num_threads(1)
    if os.path.isdir(order.folder):
        os.chdir(order.folder)
    refusal = unlike(order)
    if refusal:
        return Outcome(refusal=refusal)
    tell = _teller(order, board)
    cell = replace(order.cell, jobs=max(1, min(order.jobs, int(node_cpus() / order.cpus))))
    if order.sign is not None:
        return Outcome(error=run_cell(cell, tell))
    with scratch() as folder:
        cell = replace(cell, out=folder)
        error = run_cell(cell, tell)
        return Outcome(error=error, files=collect(cell.path))


def unlike(order: Order) -> str | None:
    """How this node differs from the driver, where that could change a result or lose it; or None."""
    if order.sign is not None and not (order.cell.out / order.sign).is_file():
        return f"does not see the driver's folder {order.cell.out}; choose an --out on a shared disk, or say --collect"
    here = packages()
    for name, wanted in order.packages.items():
        if here.get(name) != wanted and not (name == "code" and name not in here):  # no checkout: can't tell
            return f"has {name} {here.get(name, 'not at all')} where the driver has {wanted}; install the same there"
    found = describe(order.cell)
    different = sorted(key for key in order.wanted if found.get(key) != order.wanted[key])
    if different:
        return f"would run {order.cell} with other settings ({', '.join(different)}); install the same code there"
    return None


@cache
def packages() -> dict[str, str]:
    """Versions of Python, of the code and of what can change a result; CPU and CUDA builds of one version are alike."""
    found = provenance("cpu", jobs=1)
    code = {"code": found["code"]["commit"]} if found["code"]["commit"] else {}
    versions = {name: version.partition("+")[0] for name, version in found["packages"].items()}
    return {"Python": found["python"]} | code | versions


@cache
def node_cpus() -> float:
    """CPUs of the node that this process runs on."""
    ray: Any = importlib.import_module("ray")
    here = ray.get_runtime_context().get_node_id()
    return float(next(node["Resources"].get("CPU", 1.0) for node in ray.nodes() if node["NodeID"] == here))


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one cell; folders whose process died before it could remove them are removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
        _remove_if_abandoned(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / "lock.new").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(lock.name, folder / "lock")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_abandoned(lock: Path) -> None:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system frees the lock of a process that died
            shutil.rmtree(lock.parent, ignore_errors=True)
    except OSError:  # in use, or somebody else's
        return


def collect(path: Path) -> dict[str, bytes]:
    """The files of an ended cell, as far as a run directory is made of them."""
    done = {"complete": "failure.json", "failed": "run.json"}.get(status(path))
    names = [name for name in FILES if name != done and (path / name).is_file()]
    return {name: (path / name).read_bytes() for name in names}


def _teller(order: Order, board: Any) -> Callable[[int, int], None]:
    told = 0.0

    def tell(done: int, rounds: int) -> None:
        nonlocal told
        if done == 0 or time.monotonic() - told >= TELL_EVERY:
            told = time.monotonic()
            board.tell.remote(order.number, order.attempt, done, rounds)

    tell(0, 0)
    return tell
