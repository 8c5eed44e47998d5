"""How does a sweep get hold of a Ray cluster, and let go of it?"""

import ctypes
import importlib
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from filters.errors import UsageError
from harness.sweeps import machine

CONNECT_SECONDS = 10.0
OBJECT_BYTES = 128 * 2**20
"""of shared memory, for the results on their way to the driver"""


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
            # Ray's sockets lie below; their paths may have 100 characters or so.
            folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp" if os.path.isdir("/tmp") else None)
            size = {"num_cpus": jobs * cluster.cpus, "_memory": jobs * int(machine.CELL_BYTES)}
            size |= {"object_store_memory": OBJECT_BYTES}
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
        settings |= {"RAY_gcs_server_port_wait_time_s": "1"}  # one try, not 20 of up to 40 seconds each
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


def brief(error: Exception) -> str:
    """The first line, or the last one where that is a traceback's."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any("Traceback" in line or "ray::" in line for line in lines) else lines[0]


def _init(ray: Any, **settings: Any) -> None:
    try:
        with _hushed():
            ray.init(**settings)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        address = settings["address"]
        if "AuthToken" in str(_causes(error)):
            raise UsageError(
                f"the Ray cluster at {address} asks for its token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as there"
            ) from error
        raise UsageError(
            f"can't use the Ray cluster at --ray-address {address} ({brief(error)}); run this on one of its nodes, "
            "with the same versions of Ray and Python"
        ) from error


@contextmanager
def _hushed() -> Iterator[None]:
    """Without what Ray's C++ part prints before its level of logging counts."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C++ may hold its lines back until the exit
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)


def _causes(error: BaseException) -> list[BaseException]:
    return [error] if error.__cause__ is None else [error, *_causes(error.__cause__)]
