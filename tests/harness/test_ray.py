"""Sweeps on Ray: the same results as locally, also when a node dies under them."""

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from filters.errors import UsageError
from harness.cell import Cell, describe, run_cell
from harness.ray_board import Board
from harness.ray_cluster import Cluster, check_reachable, warn_if_nothing_fits
from harness.ray_launch import resources, write_collected
from harness.ray_node import Order, collect, packages, scratch, unlike
from harness.run import main
from harness.store import find_cells, status
from harness.tasks import find_task

ROOT = Path(__file__).parents[2]
WORDS = ["--filter", "iif", "random", "--suite", "smoke", "--seeds", "1"]

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or sys.platform != "linux",
    reason="needs the extra ray, and loopback addresses as Linux has them",
)


class Node:
    """A `ray start` process with all that it started."""

    def __init__(self, *words: str, log: Path, environment: dict[str, str]) -> None:
        ports = ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
        sizes = ["--num-cpus=1", "--num-gpus=0", "--object-store-memory=80000000", f"--memory={2 * 2**30}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--include-log-monitor=false"]
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [*command, *ports, *sizes, *words], stdout=file, stderr=file, env=environment, cwd=ROOT
            )
        wait_for(lambda: "Ray runtime started" in log.read_text(), self.process, log)

    def kill(self) -> None:
        """End the node at once, as if its plug were pulled."""
        family = descendants(self.process.pid)
        for pid in [self.process.pid, *family]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def catch_in_the_middle(self, driver: "subprocess.Popen[str]", log: Path) -> None:
        """Halt a process of this node while it runs a cell."""

        def caught() -> bool:
            return any(halt_if_busy(pid) for pid in descendants(self.process.pid))

        wait_for(caught, driver, log)


def halt_if_busy(pid: int) -> bool:
    if not is_busy(pid):
        return False
    os.kill(pid, signal.SIGSTOP)
    if is_busy(pid):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def is_busy(pid: int) -> bool:
    """Whether the process runs a cell; Ray writes into the title of a process what it runs."""
    try:
        return b"ray::run_order" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for parent in found:  # grows while it is walked
        found += [child for child, its in parents.items() if its == parent]
    return found[1:]


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[Any]", log: Path) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert process.poll() is None, f"ended too early: {log.read_text()}"
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[Node], dict[str, str]]]:
    """A cluster's address, its two nodes, and the environment in which the cluster lets one in."""
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment |= {"RAY_health_check_initial_delay_ms": "0", "RAY_health_check_period_ms": "500"}
    logs = tmp_path_factory.mktemp("ray")
    environment["TMPDIR"] = str(logs)  # where the cells of the killed node stay behind
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # the paths of its sockets have to be short
    address = f"127.0.0.2:{free_port()}"
    host, port = address.split(":")
    started: list[Node] = []
    try:
        head = ["--head", f"--node-ip-address={host}", f"--port={port}", f"--temp-dir={folder}"]
        head += ["--include-dashboard=false", f"--ray-client-server-port={free_port()}"]
        started.append(Node(*head, log=logs / "head", environment=environment))
        second = [f"--address={address}", "--node-ip-address=127.0.0.3"]
        started.append(Node(*second, log=logs / "second", environment=environment))
        yield address, started, environment
    finally:
        for node in started:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def start(*words: str, out: Path, log: Path, environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "harness.run", *words, "--out", str(out)]
    with log.open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, text=True, env=environment, cwd=ROOT)


def completed(out: Path) -> int:
    return len(list(out.rglob("run.json")))


def content(out: Path) -> dict[str, list[Any]]:
    """Every file of every cell but for the times and what tells one machine's load from another's."""
    found: dict[str, list[Any]] = {}
    for path in find_cells(out):
        texts = [(path / name).read_text() for name in ("evals.jsonl", "rounds.jsonl")]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        run = json.loads((path / "run.json").read_text())
        run["provenance"].pop("jobs")
        for entry in (*lines, run):
            entry.pop("seconds")
        found[str(path.relative_to(out))] = [(path / "config.json").read_bytes(), lines, run]
    return found


@needs_ray
def test_a_sweep_survives_the_death_of_a_node_and_ends_like_a_local_one(
    nodes: tuple[str, list[Node], dict[str, str]], tmp_path: Path
) -> None:
    address, (_, second), environment = nodes
    log, out = tmp_path / "log", tmp_path / "ray"
    local = start(*WORDS, "--jobs", "1", out=tmp_path / "local", log=tmp_path / "local.log")
    words = [*WORDS, "--launcher", "ray", "--ray-address", address, "--collect"]
    driver = start(*words, out=out, log=log, environment=environment)
    wait_for(lambda: completed(out) >= 1, driver, log)
    second.catch_in_the_middle(driver, log)
    assert completed(out) < 6
    second.kill()
    assert driver.wait(timeout=300) == 0, log.read_text()
    said = log.read_text()
    assert "was lost; starting again (2 of 4)" in said
    assert "raylet" not in said  # what Ray itself has to say about it
    assert local.wait(timeout=300) == 0
    assert len(content(out)) == 6
    assert content(out) == content(tmp_path / "local")
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


@needs_ray
def test_a_shared_folder_a_cell_that_fails_and_an_interruption(
    nodes: tuple[str, list[Node], dict[str, str]], tmp_path: Path
) -> None:
    address, (head, _), environment = nodes
    log, out = tmp_path / "log", tmp_path / "out"
    filters = ["tests.broken_filters:Raises", "random", "iif"]
    words = ["--filter", *filters, "--seeds", "1", "--task", "smoke-FrozenLake"]
    words += ["--launcher", "ray", "--ray-address", address]
    driver = start(*words, out=out, log=log, environment=environment)
    wait_for(lambda: completed(out) >= 1 and bool(list(out.rglob("failure.json"))), driver, log)
    head.catch_in_the_middle(driver, log)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=120) == 130
    assert "interrupted; what is complete stays so. To go on: python -m harness.run" in log.read_text()
    assert "Traceback" not in log.read_text()
    finished = {path: path.stat().st_mtime_ns for path in out.rglob("run.json")}
    driver = start(*words, out=out, log=log, environment=environment)
    assert driver.wait(timeout=300) == 1, log.read_text()
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    assert sorted(map(status, find_cells(out))) == ["complete"] * 3 + ["failed"]
    failure = json.loads(next(out.rglob("failure.json")).read_text())
    assert "raised ZeroDivisionError in round 0" in failure["error"]
    assert "was lost" not in log.read_text()
    assert not list(out.glob(".*"))


def smoke_cell(out: Path, spec: str = "random") -> Cell:
    return Cell(task=find_task("smoke-MiniGrid"), spec=spec, seed=0, out=out)


def order(out: Path, **changes: Any) -> Order:
    cell = smoke_cell(out)
    sound = Order(
        cell=cell,
        number=0,
        attempt=1,
        folder=os.getcwd(),
        wanted=describe(cell),
        packages=packages(),
        sign=None,
        jobs=1,
        cpus=1,
    )
    return replace(sound, **changes)


def test_a_node_that_differs_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".shared").touch()
    assert unlike(order(tmp_path)) is None
    assert unlike(order(tmp_path, sign=".shared")) is None
    assert "does not see the driver's folder" in str(unlike(order(tmp_path / "elsewhere", sign=".shared")))
    other = packages() | {"torch": "0.1"}
    assert "where the driver has 0.1; install the same there" in str(unlike(order(tmp_path, packages=other)))
    extra = packages() | {"ale-py-of-tomorrow": "9"}
    assert "has ale-py-of-tomorrow not at all where" in str(unlike(order(tmp_path, packages=extra)))
    wanted = describe(smoke_cell(tmp_path)) | {"filter_class": "other:Random"}
    assert "with other settings (filter_class)" in str(unlike(order(tmp_path, wanted=wanted)))


@pytest.mark.parametrize(("spec", "ending"), [("random", "run.json"), ("tests.broken_filters:Raises", "failure.json")])
def test_collected_files_make_the_same_folder(
    tmp_path: Path, spec: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = smoke_cell(tmp_path / "node", spec)
    run_cell(cell, lambda done, rounds: None)
    files = collect(cell.path)
    assert set(files) == {"config.json", "evals.jsonl", "rounds.jsonl", ending}
    target = smoke_cell(tmp_path / "driver", spec).path
    target.mkdir(parents=True)
    (target / "failure.json").write_text("of an earlier attempt")
    order: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (order.append(Path(new).name), replace(old, new)))
    write_collected(target, files)
    assert order[-1] == ending
    assert {path.name: path.read_bytes() for path in target.iterdir()} == files
    assert status(target) == status(cell.path)


def test_what_a_dead_process_left_on_a_node_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "filtergym-of-the-dead").mkdir()
    (tmp_path / "filtergym-of-the-dead" / "lock").touch()
    (tmp_path / "something-else").mkdir()
    with scratch() as first:
        with scratch() as second:
            assert {path.name for path in tmp_path.iterdir()} == {"something-else", first.name, second.name}
        assert not second.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["something-else"]


def test_only_the_files_of_a_run_directory_are_taken_from_a_node(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"don't belong into a run directory \(\.\./\.\./\.bashrc\)"):
        write_collected(tmp_path / "seed-0", {"config.json": b"{}", "../../.bashrc": b"rm"})
    assert not list(tmp_path.iterdir())


def test_the_board_keeps_the_latest_of_every_cell_until_it_is_read() -> None:
    board = Board()
    board.tell(3, 1, 1, 9)
    board.tell(3, 1, 2, 9)
    board.tell(5, 2, 0, 0)
    assert board.take() == {3: (1, 2, 9), 5: (2, 0, 0)}
    assert board.take() == {}


def test_what_a_cell_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell, cluster = smoke_cell(tmp_path), Cluster(cpus=2, gpus=0.5)
    gigabytes = int(1.2 * 2**30)
    assert resources([cell], cluster) == {"num_cpus": 2, "memory": gigabytes}
    wanted = resources([replace(cell, device="cuda")], cluster)
    assert wanted == {"num_cpus": 2, "memory": gigabytes, "num_gpus": 0.5}

    class Ray:
        def __init__(self, *resources: dict[str, float]) -> None:
            self.resources = resources

        def nodes(self) -> list[dict[str, Any]]:
            return [{"Alive": True, "Resources": each} for each in self.resources]

    small, large = {"CPU": 8.0, "memory": 9e9}, {"CPU": 2.0, "memory": 2e9, "GPU": 1.0}
    warn_if_nothing_fits(Ray(small, large), wanted)
    assert capsys.readouterr().err == ""
    warn_if_nothing_fits(Ray(small), wanted)
    assert "no node of the cluster has room for a cell (2 CPU, 1.2 GiB, 0.5 GPU)" in capsys.readouterr().err


def test_addresses() -> None:
    check_reachable("auto")
    for address in ("head", "head:port", ":6379", "ray://head:10001"):
        with pytest.raises(UsageError, match="takes local, auto or host:port"):
            check_reachable(address)
    with pytest.raises(UsageError, match=r"nobody answers at --ray-address 127\.0\.0\.1:1 "):
        check_reachable("127.0.0.1:1")


BAD = {
    "Ray is missing": (["--launcher", "ray"], r"pip install 'filtergym\[ray\]'"),
    "options of Ray without it": (["--collect"], "add --launcher ray"),
    "no CPU": (["--launcher", "ray", "--cell-cpus", "0"], "must be above 0"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, sentence = BAD[case]
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(UsageError, match=sentence):
        main([*WORDS, *words, "--out", str(tmp_path / "out")])
