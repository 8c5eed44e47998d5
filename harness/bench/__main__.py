"""How fast is training, next to a well-kept implementation, and what do compiling, filters and jobs change?

    scripts/bench
    scripts/bench --rounds 5 --tables speed step
    scripts/bench --device cuda
    scripts/bench --profile profile.md

All ratios are measured in one run, the sides in turn, on one thread a process; evaluation is excluded on every side.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import torch
import tyro
from rich.console import Console
from rich.table import Table

from filters.errors import UsageError, run_command
from harness.bench.profile import profile
from harness.bench.rounds import Ours, in_turn, peer_rounds, process_memory, throughput
from harness.sweeps import machine
from harness.tasks.catalogue import Task, find_task

TASK_IDS = ("LunarLander/v2", "MiniGrid-Empty-8x8/v3", "CartPole/v2")
FILTERS = ("none", "iif", "dtv", "dtv-loo", "i-ppo")
STEPS = 100
"""optimizer steps of one measurement"""

Name = Literal["speed", "step", "filters", "jobs", "memory"]


@dataclass(frozen=True)
class Args:
    """Training steps per second next to Stable-Baselines3, and what compiling, filters and jobs change."""

    task: tuple[str, ...] = TASK_IDS
    """tasks to measure"""
    tables: tuple[Name, ...] = get_args(Name)
    """which tables to make"""
    rounds: int = 3
    """rounds of each measurement, after one to warm up"""
    peer: bool = True
    """measure Stable-Baselines3 as well (extra `bench`)"""
    device: Literal["cpu", "cuda"] = "cpu"
    """where networks and updates live, on all sides"""
    profile: Path | None = None
    """write where a round's time goes to this file, and measure nothing else"""


def title(text: str) -> Table:
    """A table with a heading and its first column."""
    table = Table(title=text, title_justify="left")
    table.add_column("task")
    return table


def add_columns(table: Table, *names: str) -> None:
    """Columns of numbers."""
    for name in names:
        table.add_column(name, justify="right")


def speed_table(tasks: list[Task], args: Args) -> Table:
    """Training steps per second of the baseline, ours against the peer's."""
    table = title("training steps per second without a filter, one thread")
    add_columns(table, "eager", "compiled", "Stable-Baselines3", "ratio", "compiled, EnvPool", "ratio")
    for task in tasks:
        runs: dict[str, Callable[[], None]] = {
            "eager": Ours(task, compile="off", device=args.device).rounds(args.rounds),
            "compiled": Ours(task, compile="on", device=args.device).rounds(args.rounds),
        }
        if args.peer:
            runs["peer"] = peer_rounds(task, args.rounds, args.device)
        with suppress(UsageError):  # the task or the backend is missing there: the column stays empty
            ours = Ours(task, compile="on", device=args.device, env_backend="envpool")
            runs["envpool"] = ours.rounds(args.rounds)
        for name in runs.keys() - {"peer"}:
            runs[name]()  # to warm up
        steps = args.rounds * task.args.batch_size
        found = {name: steps / least for name, least in in_turn(runs).items()}
        peer = found.get("peer")
        cells = {name: f"{found[name]:,.0f}" if name in found else "–" for name in (*runs, "peer", "envpool")}
        ratios = [f"{found[name] / peer:.2f}" if peer and name in found else "–" for name in ("compiled", "envpool")]
        table.add_row(task.id, cells["eager"], cells["compiled"], cells["peer"], ratios[0], cells["envpool"], ratios[1])
    return table


def step_table(tasks: list[Task], args: Args) -> Table:
    """An optimizer step, eager against compiled, and how many steps repay the compiling."""
    table = title("milliseconds of an optimizer step")
    add_columns(table, "eager", "compiled", "ratio", "start-up s", "repaid after steps", "steps of a run")
    for task in tasks:
        eager, fast = (Ours(task, compile=mode, device=args.device) for mode in ("off", "on"))
        again = Ours(task, compile="on", device=args.device)
        batches = eager.minibatches(STEPS)

        def steps(ours: Ours, batches: list[object] = batches) -> Callable[[], None]:
            def work() -> None:
                for mb in batches:
                    ours.state.calls.step(mb)
                if ours.args.device == "cuda":
                    torch.cuda.synchronize()

            work()  # to warm up
            return work

        found = in_turn({"eager": steps(eager), "fast": steps(fast)}, times=5)
        slow, quick = (1000 * found[name] / STEPS for name in ("eager", "fast"))
        startup = fast.startup - eager.startup
        whole = task.args.rounds * task.args.update_epochs * (task.args.batch_size // task.args.minibatch_size)
        table.add_row(
            task.id,
            f"{slow:.2f}",
            f"{quick:.2f}",
            f"{slow / quick:.2f}",
            f"{startup:.1f}, then {again.startup:.1f}",
            f"{1000 * startup / (slow - quick):,.0f}",
            f"{whole:,}",
        )
    return table


def filter_table(tasks: list[Task], args: Args) -> Table:
    """Time of a round with each filter, as a share of the baseline's."""
    table = title("time of a round, compiled, in units of the baseline's (kept share)")
    add_columns(table, *FILTERS)
    for task in tasks:
        runs = {spec: Ours(task, spec=spec, compile="on", device=args.device) for spec in FILTERS}
        for ours in runs.values():
            ours.round()  # to warm up
        times = in_turn({spec: ours.rounds(args.rounds) for spec, ours in runs.items()})
        cells = [
            f"{times[spec] / times['none']:.2f} ({100 * sum(ours.kept) / len(ours.kept):.0f} %)"
            for spec, ours in runs.items()
        ]
        table.add_row(task.id, *cells)
    return table


def jobs_table(tasks: list[Task], args: Args) -> Table:
    """Training steps per second of several cells side by side, against one."""
    counts = sorted({1, 2, machine.jobs()})
    table = title("training steps per second of cells side by side (times that of one)")
    add_columns(table, *(f"{count} job{'s' if count > 1 else ''}" for count in counts))
    for task in tasks:
        rounds = max(4 * args.rounds, 8 * 2048 // task.args.batch_size)
        compiled = replace(task, args=replace(task.args, compile="on"))
        throughput(compiled, 1, 2)  # to compile
        found = {count: throughput(compiled, count, rounds) for count in counts}
        table.add_row(task.id, *(f"{found[count]:,.0f} ({found[count] / found[1]:.2f})" for count in counts))
    return table


def memory_table(tasks: list[Task], args: Args) -> Table:
    """Memory of a whole process at its peak."""
    table = title(f"MiB of a process at its peak, {args.rounds} rounds and an evaluation, packages included")
    add_columns(table, "none", "dtv-loo")
    for task in tasks:
        compiled = replace(task, args=replace(task.args, compile="on", device=args.device))
        table.add_row(task.id, *(f"{process_memory(compiled, args.rounds, spec):.0f}" for spec in ("none", "dtv-loo")))
    return table


TABLES: dict[Name, Callable[[list[Task], Args], Table]] = {
    "speed": speed_table,
    "step": step_table,
    "filters": filter_table,
    "jobs": jobs_table,
    "memory": memory_table,
}


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = tyro.cli(Args, args=argv, prog="scripts/bench", description=__doc__)
    tasks = [find_task(name) for name in args.task]
    if args.rounds < 1:
        raise UsageError(f"--rounds must be 1 or more, got {args.rounds}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: this PyTorch finds no CUDA device; use --device cpu or install a CUDA build")
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 130)
    if args.profile:
        text = "\n".join(profile(task, args.rounds, args.device) for task in tasks)
        args.profile.write_text(text, encoding="utf-8")
        console.print(f"written to {args.profile}")
        return
    for name in args.tables:
        console.print(TABLES[name](tasks, args))


if __name__ == "__main__":
    sys.exit(run_command(main))
