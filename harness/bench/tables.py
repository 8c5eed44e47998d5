"""How fast is training, next to a well-kept implementation, and what do compiling, filters and jobs change?

A table each: measured in one run, the sides in turn, on one thread a process; evaluation is excluded on every side.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from rich.table import Table

from filters.errors import UsageError
from harness.bench.rounds import Ours, in_turn, peer_rounds, process_memory, throughput
from harness.sweeps import machine
from harness.tasks.task import Task

FILTERS = ("none", "iif", "dtv", "dtv-loo", "i-ppo")
STEPS = 100
"""optimizer steps of one measurement"""

Device = Literal["cpu", "cuda"]
Name = Literal["speed", "step", "filters", "jobs", "memory"]


@dataclass(frozen=True)
class Setup:
    """How all tables are measured."""

    rounds: int
    """of each measurement, after one to warm up"""
    device: Device
    """where networks and updates live, on all sides"""
    peer: bool
    """whether Stable-Baselines3 is measured as well"""


def title(text: str) -> Table:
    """A table with a heading and its first column."""
    table = Table(title=text, title_justify="left")
    table.add_column("task")
    return table


def add_columns(table: Table, *names: str) -> None:
    """Columns of numbers."""
    for name in names:
        table.add_column(name, justify="right")


def speed_table(tasks: list[Task], setup: Setup) -> Table:
    """Training steps per second of the baseline, ours against the peer's."""
    table = title("training steps per second without a filter, one thread")
    add_columns(table, "eager", "compiled", "Stable-Baselines3", "ratio", "compiled, EnvPool", "ratio")
    for task in tasks:
        found = speeds(task, setup)
        peer = found.get("peer")
        cells = {name: f"{found[name]:,.0f}" if name in found else "–" for name in (*found, "peer", "envpool")}
        ratios = [f"{found[name] / peer:.2f}" if peer and name in found else "–" for name in ("compiled", "envpool")]
        table.add_row(task.id, cells["eager"], cells["compiled"], cells["peer"], ratios[0], cells["envpool"], ratios[1])
    return table


def speeds(task: Task, setup: Setup) -> dict[str, float]:
    """Training steps per second of each side that can run."""
    runs: dict[str, Callable[[], None]] = {
        "eager": Ours(task, compile="off", device=setup.device).rounds(setup.rounds),
        "compiled": Ours(task, compile="on", device=setup.device).rounds(setup.rounds),
    }
    if setup.peer:
        runs["peer"] = peer_rounds(task, setup.rounds, setup.device)
    with suppress(UsageError):  # the task or the backend is missing there: the column stays empty
        ours = Ours(task, compile="on", device=setup.device, env_backend="envpool")
        runs["envpool"] = ours.rounds(setup.rounds)
    for name in runs.keys() - {"peer"}:
        runs[name]()  # to warm up
    steps = setup.rounds * task.args.batch_size
    return {name: steps / least for name, least in in_turn(runs).items()}


def step_table(tasks: list[Task], setup: Setup) -> Table:
    """An optimizer step, eager against compiled, and how many steps repay the compiling."""
    table = title("milliseconds of an optimizer step")
    add_columns(table, "eager", "compiled", "ratio", "start-up s", "repaid after steps", "steps of a run")
    for task in tasks:
        eager, fast = (Ours(task, compile=mode, device=setup.device) for mode in ("off", "on"))
        again = Ours(task, compile="on", device=setup.device)
        batches = eager.minibatches(STEPS)
        works = {"eager": eager.steps(batches), "fast": fast.steps(batches)}
        for work in works.values():
            work()  # to warm up
        found = in_turn(works, times=5)
        slow, quick = (1000 * found[name] / STEPS for name in ("eager", "fast"))
        startup = fast.startup - eager.startup
        whole = task.args.rounds * task.args.update_epochs * (task.args.batch_size // task.args.minibatch_size)
        cells = (f"{slow:.2f}", f"{quick:.2f}", f"{slow / quick:.2f}", f"{startup:.1f}, then {again.startup:.1f}")
        table.add_row(task.id, *cells, f"{1000 * startup / (slow - quick):,.0f}", f"{whole:,}")
    return table


def filter_table(tasks: list[Task], setup: Setup) -> Table:
    """Time of a round with each filter, as a share of the baseline's."""
    table = title("time of a round, compiled, in units of the baseline's (kept share)")
    add_columns(table, *FILTERS)
    for task in tasks:
        runs = {spec: Ours(task, spec=spec, compile="on", device=setup.device) for spec in FILTERS}
        for ours in runs.values():
            ours.round()  # to warm up
        times = in_turn({spec: ours.rounds(setup.rounds) for spec, ours in runs.items()})
        cells = [
            f"{times[spec] / times['none']:.2f} ({100 * sum(ours.kept) / len(ours.kept):.0f} %)"
            for spec, ours in runs.items()
        ]
        table.add_row(task.id, *cells)
    return table


def jobs_table(tasks: list[Task], setup: Setup) -> Table:
    """Training steps per second of several cells side by side, against one."""
    counts = sorted({1, 2, machine.jobs()})
    table = title("training steps per second of cells side by side (times that of one)")
    add_columns(table, *(f"{count} job{'s' if count > 1 else ''}" for count in counts))
    for task in tasks:
        rounds = max(4 * setup.rounds, 8 * 2048 // task.args.batch_size)
        compiled = replace(task, args=replace(task.args, compile="on"))
        throughput(compiled, 1, 2)  # to compile
        found = {count: throughput(compiled, count, rounds) for count in counts}
        table.add_row(task.id, *(f"{found[count]:,.0f} ({found[count] / found[1]:.2f})" for count in counts))
    return table


def memory_table(tasks: list[Task], setup: Setup) -> Table:
    """Memory of a whole process at its peak."""
    table = title(f"MiB of a process at its peak, {setup.rounds} rounds and an evaluation, packages included")
    add_columns(table, "none", "dtv-loo")
    for task in tasks:
        compiled = replace(task, args=replace(task.args, compile="on", device=setup.device))
        table.add_row(task.id, *(f"{process_memory(compiled, setup.rounds, spec):.0f}" for spec in ("none", "dtv-loo")))
    return table


TABLES: dict[Name, Callable[[list[Task], Setup], Table]] = {
    "speed": speed_table,
    "step": step_table,
    "filters": filter_table,
    "jobs": jobs_table,
    "memory": memory_table,
}
