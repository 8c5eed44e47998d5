"""Sweeps on Ray: the same results as locally, also when a node dies under them."""

import errno
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
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from filters.errors import UsageError
from harness import run
from harness.cells.cell import Cell, StorageError, describe, make_filter, take_cell
from harness.cells.lock import CellLock, is_locked
from harness.cells.sources import project_sources
from harness.cluster import launch as ray_launch
from harness.cluster.board import Board, News
from harness.cluster.cluster import Cluster, check_reachable, warn_if_nothing_fits
from harness.cluster.launch import Sweep, resources, write_collected
from harness.cluster.node import PREFIX, Order, Reply, belongs, collect, scratch, unlike, versions
from harness.sweeps.launch import Event
from harness.sweeps.plan import plan
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import find_cells, read_failure, status

ROOT = Path(__file__).parents[3]
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
        del run["digest"], run["files"]  # of these times
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
def test_a_shared_folder_an_interruption_and_cells_that_fail_or_hang(
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
    hangs = [
        "--filter",
        "tests.broken_filters:Hangs",
        "--no-baseline",
        "--cell-timeout",
        "1",
        *words[len(filters) + 1 :],
    ]
    other, other_log = tmp_path / "other", tmp_path / "other.log"
    hanging = start(*hangs, out=other, log=other_log, environment=environment)
    assert driver.wait(timeout=300) == 1, log.read_text()
    assert hanging.wait(timeout=300) == 1, other_log.read_text()
    assert [read_failure(path).error for path in find_cells(other)] == [
        "it took longer than the 1 seconds of --cell-timeout"
    ]
    assert "starting again" not in other_log.read_text()
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    assert sorted(map(status, find_cells(out))) == ["complete"] * 3 + ["failed"]
    failure = json.loads(next(out.rglob("failure.json")).read_text())
    assert "raised ZeroDivisionError in round 0" in failure["error"]
    assert "was lost" not in log.read_text()
    assert not list(out.glob(".*"))


def smoke_cell(out: Path, spec: str = "random", seed: int = 0, **settings: Any) -> Cell:
    return Cell(task=find_task("smoke-FrozenLake"), spec=spec, seed=seed, out=out, **settings)


def order(out: Path, **changes: Any) -> Order:
    cell = smoke_cell(out)
    sound = Order(
        cell=cell,
        number=0,
        attempt=1,
        folder=os.getcwd(),
        wanted=describe(cell),
        versions=versions(),
        sources=project_sources(cell.task.agent, make_filter(cell)),
        sign=None,
        jobs=1,
        cpus=1,
        timeout=None,
    )
    return replace(sound, **changes)


def test_a_node_that_differs_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".shared").touch()
    assert unlike(order(tmp_path)) is None
    assert unlike(order(tmp_path, sign=".shared")) is None
    assert "does not see the driver's folder" in str(unlike(order(tmp_path / "elsewhere", sign=".shared")))
    other = versions() | {"torch": "0.1"}
    assert "where the driver has 0.1; install the same there" in str(unlike(order(tmp_path, versions=other)))
    extra = versions() | {"ale-py-of-tomorrow": "9"}
    assert "has ale-py-of-tomorrow not at all where" in str(unlike(order(tmp_path, versions=extra)))
    wanted = describe(smoke_cell(tmp_path)) | {"filter_class": "other:Random"}
    assert "with other settings (filter_class)" in str(unlike(order(tmp_path, wanted=wanted)))
    edited = order(tmp_path).sources | {"algos.ppo": "0"}
    assert unlike(order(tmp_path, sources=edited)) == "has another version of algos.ppo; install the same code there"


@pytest.mark.parametrize(("spec", "ending"), [("random", "run.json"), ("tests.broken_filters:Raises", "failure.json")])
@pytest.mark.parametrize("trace", [False, True])
def test_collected_files_make_the_same_folder(
    tmp_path: Path, spec: str, ending: str, trace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = smoke_cell(tmp_path / "node", spec, trace=trace)
    take_cell(cell, lambda done, rounds: None)
    if ending == "failure.json":
        (cell.path / "checkpoint.pt").write_bytes(b"what a failure names")
    plots = {path.name for path in cell.path.glob("events.out.tfevents*")}
    files = collect(cell.path)
    found = {path.relative_to(cell.path).as_posix(): path for path in cell.path.rglob("*") if path.is_file()}
    assert files == {name: path.read_bytes() for name, path in found.items() if name not in plots}
    assert ("trace/round-0000.npz" in files) == (trace and ending == "run.json")
    target = smoke_cell(tmp_path / "driver", spec, trace=trace)
    target.path.mkdir(parents=True)
    (target.path / "failure.json").write_text("of an earlier attempt")
    order: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (order.append(Path(new).name), replace(old, new)))
    write_collected(target, files)
    assert order[-1] == ending
    made = [path for path in target.path.rglob("*") if path.is_file()]
    assert {path.relative_to(target.path).as_posix(): path.read_bytes() for path in made} == files
    assert status(target.path) == status(cell.path)


def test_what_a_dead_process_left_on_a_node_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, kept = tmp_path / f"{PREFIX}0123456789abcdef", tmp_path / f"{PREFIX}of-the-user"
    dead.mkdir()
    dead.with_name(f".{dead.name}.lock").touch()
    dead.with_name(f".{PREFIX}fedcba9876543210.lock").touch()  # it died before it made its folder
    kept.mkdir()
    with scratch() as first:
        with scratch() as second:
            assert set(tmp_path.glob("[!.]*")) == {kept, first, second}
        assert not second.exists()
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.parametrize(
    "name", ["../../.bashrc", "trace/round-0001.npz", "trace/../../round-0001.npz", "round-0001.npz", "events.out"]
)
def test_only_the_files_of_a_run_directory_are_taken_from_a_node(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="don't belong into a run directory") as caught:
        write_collected(smoke_cell(tmp_path), {"config.json": b"{}", name: b"rm"})
    assert f"({name})" in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert belongs(name, trace=True) == (name == "trace/round-0001.npz")


def test_a_full_disk_at_the_driver_stops_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cell = smoke_cell(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        write_collected(cell, {"config.json": b"{}", "run.json": b"{}"})
    assert list(cell.path.iterdir()) == []


def test_the_board_keeps_the_latest_of_every_cell_until_it_is_read() -> None:
    board = Board()
    board.tell(3, 1, 0, 0)
    (first,) = board.take().values()
    board.tell(3, 1, 1, 9)
    board.tell(3, 1, 2, 9)
    board.tell(5, 2, 0, 0)
    news = board.take()
    assert news[3] == News(1, 2, 9, began=first.began)
    assert (news[5].attempt, news[5].done, news[5].rounds) == (2, 0, 0)
    assert news[5].began >= first.began
    assert board.take() == {}


class LostError(Exception):
    """A Ray error: the task's process is gone."""


class FakeRay:
    """Ray as far as the driver's part needs it: every task ends at once, the next one as `script` says.

    A script's entry is what a node answers, an error that it ends with, or a function to call first.
    """

    exceptions = SimpleNamespace(
        RayError=LostError, NodeDiedError=OSError, RayTaskError=ZeroDivisionError, RuntimeEnvSetupError=KeyError
    )
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: None)
    )

    def __init__(self, *script: Any) -> None:
        self.script, self.orders, self.news = list(script), list[Order](), dict[int, News]()

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 8.0, "memory": 9e9}}]

    def remote(self, **_: Any) -> Any:
        def bind(what: Any) -> Any:
            if what is Board:
                board = SimpleNamespace(take=SimpleNamespace(remote=lambda: self.news))
                return SimpleNamespace(remote=lambda: board)
            return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.start))

        return bind

    def start(self, order: Order, board: Any) -> int:
        self.orders.append(order)
        return len(self.orders)

    def wait(self, tasks: list[int], timeout: float) -> tuple[list[int], list[int]]:
        number = self.orders[tasks[0] - 1]
        answer = self.script[0]
        if isinstance(answer, News):
            self.news = {number.number: answer}
            self.script.pop(0)
            return [], tasks
        return tasks[:1], tasks[1:]

    def get(self, what: Any) -> Any:
        if not isinstance(what, int):
            return what
        answer = self.script.pop(0)
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer


def sweep(ray: FakeRay, cells: list[Cell], *, collect: bool = True, timeout: float | None = None) -> list[Event]:
    events: list[Event] = []
    cluster, sign = Cluster(collect=collect), None if collect else ".shared"
    Sweep(ray, cells, jobs=1, on_event=events.append, timeout=timeout, cluster=cluster, sign=sign).run()
    assert ray.script == []
    assert not list(cells[0].out.rglob("*.lock"))
    return [event for event in events if event.ended]


COMPLETE = Reply(files={"config.json": b"{}", "run.json": b"{}"})


def test_a_lost_cell_starts_again_four_times_in_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [smoke_cell(tmp_path, seed=seed) for seed in range(2)]
    lost = LostError("gone")
    ray = FakeRay(lost, COMPLETE, lost, lost, lost, News(4, 2, 5, began=time.monotonic()), lost)
    ended = sweep(ray, cells, timeout=3600)
    assert [(order.number, order.attempt) for order in ray.orders] == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (1, 4)]
    assert [event.error for event in ended] == [
        None,
        "its process was lost 4 times, perhaps out of memory (gone)",
    ]
    assert (read_failure(cells[1].path).error, read_failure(cells[1].path).round) == (ended[1].error, 2)
    assert status(cells[0].path) == "complete"
    assert capsys.readouterr().err.count("starting again") == 4


@pytest.mark.parametrize("collect", [True, False])
def test_a_cell_whose_time_is_up_is_not_started_again(tmp_path: Path, collect: bool) -> None:
    cell = smoke_cell(tmp_path)
    (ended,) = sweep(FakeRay(News(1, 0, 0, began=-1e9), LostError("gone")), [cell], collect=collect, timeout=7)
    assert ended.error == "it took longer than the 7 seconds of --cell-timeout"
    assert (read_failure(cell.path).error, read_failure(cell.path).round) == (ended.error, None)


def test_the_driver_holds_the_lock_of_a_cell_that_it_collects(tmp_path: Path) -> None:
    cell = smoke_cell(tmp_path)

    def answer() -> Reply:
        assert is_locked(cell.path)
        return COMPLETE

    (ended,) = sweep(FakeRay(answer), [cell])
    assert ended == Event(cell, ended=True)

    def answer_apart() -> Reply:
        assert not is_locked(cell.path)
        return Reply(error="it failed")

    (cell.path / "run.json").unlink()
    (ended,) = sweep(FakeRay(answer_apart), [cell], collect=False)
    assert ended == Event(cell, ended=True, error="it failed")


def test_cells_of_another_sweep_are_put_aside_and_taken_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [smoke_cell(tmp_path, seed=seed) for seed in range(2)]
    other = CellLock(cells[0].path)
    assert other.take()

    def leave(_: float) -> None:
        cells[0].path.mkdir(exist_ok=True)
        (cells[0].path / "config.json").write_text(json.dumps(describe(cells[0])))
        (cells[0].path / "run.json").touch()
        other.release()

    monkeypatch.setattr(ray_launch.time, "sleep", leave)
    ray = FakeRay(COMPLETE)
    assert [(event.cell.seed, event.busy) for event in sweep(ray, cells)] == [(0, True), (1, False), (0, False)]
    assert [order.cell.seed for order in ray.orders] == [1]


def test_a_node_that_finds_a_cell_busy_gets_it_again(tmp_path: Path) -> None:
    ray = FakeRay(Reply(busy=True), Reply())
    ended = sweep(ray, [smoke_cell(tmp_path)], collect=False)
    assert [event.busy for event in ended] == [True, False]
    assert [order.attempt for order in ray.orders] == [1, 1]


def test_what_stops_a_node_stops_the_sweep(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No space left"):
        sweep(FakeRay(Reply(fatal="No space left")), [smoke_cell(tmp_path)])
    assert not list(tmp_path.rglob("*.lock"))


def test_a_process_ends_itself_when_its_time_is_up_even_if_it_holds_the_interpreter() -> None:
    hangs = (
        "import ctypes\nfrom harness.cluster.node import time_limit\nwith time_limit({}): ctypes.PyDLL(None).sleep({})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", hangs.format(0.05, 600)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert (ended.returncode, "Timeout (0:00:00.05" in ended.stderr) == (1, True)


def test_what_a_cell_takes(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(cpus=2, gpus=0.5)
    gigabytes = int(1.2 * 2**30)
    assert resources("cpu", cluster) == {"num_cpus": 2, "memory": gigabytes}
    wanted = resources("cuda", cluster)
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


def planned(**words: Any) -> list[Cell]:
    """The cells of that command line."""
    args = run.Args(**words)
    return plan(args, here=not run.on_cluster(args))


def test_a_cluster_may_have_the_gpu_that_this_machine_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("harness.sweeps.plan.faster_device", lambda task: pytest.fail("measured here"))
    words: dict[str, Any] = {"filter": (("none",),), "task": ("smoke-FrozenLake",), "seeds": "1", "out": tmp_path}
    cluster = words | {"launcher": "ray", "ray_address": "auto"}
    with pytest.raises(UsageError, match="finds no CUDA device"):
        planned(**words, device="cuda")
    assert planned(**cluster)[0].device == "cpu"
    (cell,) = planned(**cluster, device="cuda")
    assert cell.device == "cuda"
    cell.path.mkdir(parents=True)
    (cell.path / "config.json").write_text(json.dumps(describe(cell)))
    assert planned(**cluster)[0].device == "cuda"


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
        run.main([*WORDS, *words, "--out", str(tmp_path / "out")])
