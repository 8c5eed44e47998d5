"""How fast is training, next to a well-kept implementation, and what do filters add or save?

    scripts/bench
    scripts/bench --rounds 5

All ratios are measured in one run on one thread; evaluation is excluded on every side.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from algos.envs import make_env
from algos.recorder import SilentRecorder
from filters.api import run_filter
from filters.cost import peak_memory
from filters.errors import UsageError, run_command
from filters.registry import make
from harness.tasks import TASKS, Task

TASK_IDS = ("LunarLander/v1", "MiniGrid-Empty-8x8/v1", "CartPole/v1")
FILTERS = ("none", "iif", "dtv", "dtv-loo", "i-ppo")


@dataclass(frozen=True)
class Args:
    """Training steps per second next to Stable-Baselines3, and the time of a round with each filter."""

    task: tuple[str, ...] = TASK_IDS
    """tasks to measure"""
    rounds: int = 3
    """rounds of each measurement, after one to warm up"""
    peer: bool = True
    """measure Stable-Baselines3 as well (extra `bench`)"""


class Ours:
    """Rounds of one of our agents on one task: collect, filter, update."""

    def __init__(self, task: Task, *, backend: Any = "gymnasium", spec: str = "none") -> None:
        self.module, self.args = task.module, replace(task.args, env_backend=backend)
        self.state = self.module.open_state(self.args)
        self.filter = make(spec, task.filter_defaults)
        self.kept: list[float] = []

    def round(self) -> None:
        """One round as `train` makes it."""
        rollout, _ = self.module.collect(self.state, self.args, SilentRecorder())
        rollout = replace(rollout, round=self.state.round + 100)  # past every warm-up
        objective = self.module.open_objective(self.state.agent, rollout, self.args)
        selection = run_filter(self.filter, rollout, objective)
        self.module.update(self.state, rollout, selection, self.filter.apply, self.args)
        self.kept.append(float(selection.keep.float().mean()))
        self.state.round += 1


def peer_rounds(task: Task, rounds: int) -> Callable[[], None]:
    """As many rounds of Stable-Baselines3's PPO with the same network, settings and environments."""
    try:
        from harness.bench_peer import make_peer
    except ImportError as error:
        raise UsageError(f"{error}; install the peer with pip install 'filtergym[bench]', or say --no-peer") from error
    model = make_peer(task, lambda: make_env(task.args.env_id, task.args.env_kwargs))
    model.learn(task.args.batch_size)  # to warm up

    def learn() -> None:
        model.learn(rounds * task.args.batch_size, reset_num_timesteps=False)

    return learn


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rounds_of(ours: Ours, rounds: int) -> Callable[[], None]:
    """That many rounds, after one to warm up."""
    ours.round()

    def work() -> None:
        for _ in range(rounds):
            ours.round()

    return work


def speed_table(tasks: list[Task], args: Args) -> Table:
    """Training steps per second of the baseline, ours against the peer's."""
    table = Table(title="training steps per second, one thread, without a filter", title_justify="left")
    table.add_column("task")
    for column in ("ours", "Stable-Baselines3", "ratio", "ours on EnvPool", "ratio", "peak MiB of a round"):
        table.add_column(column, justify="right")
    for task in tasks:
        steps = args.rounds * task.args.batch_size
        runs: dict[str, Callable[[], None]] = {"ours": rounds_of(Ours(task), args.rounds)}
        if args.peer:
            runs["peer"] = peer_rounds(task, args.rounds)
        with suppress(UsageError):  # the task or the backend is missing there: the column stays empty
            runs["envpool"] = rounds_of(Ours(task, backend="envpool"), args.rounds)
        # Side by side twice, so that a slow moment of the machine meets all of them; the best counts.
        found = {name: steps / min(seconds(work), seconds(work)) for name, work in runs.items()}
        peer = found.get("peer")
        cells = [f"{found[name]:,.0f}" if name in found else "–" for name in ("ours", "peer", "envpool")]
        ratios = [f"{found[name] / peer:.2f}" if peer and name in found else "–" for name in ("ours", "envpool")]
        memory = f"{peak_memory(Ours(task).round):.0f}"
        table.add_row(task.id, cells[0], cells[1], ratios[0], cells[2], ratios[1], memory)
    return table


def filter_table(tasks: list[Task], args: Args) -> Table:
    """Time of a round with each filter, as a share of the baseline's."""
    table = Table(title="time of a round in units of the baseline's (kept share)", title_justify="left")
    table.add_column("task")
    for spec in FILTERS:
        table.add_column(spec, justify="right")
    for task in tasks:
        runs = {spec: Ours(task, spec=spec) for spec in FILTERS}
        works = {spec: rounds_of(ours, args.rounds) for spec, ours in runs.items()}
        times = {spec: min(seconds(work), seconds(work)) for spec, work in works.items()}
        table.add_row(
            task.id,
            *(
                f"{times[spec] / times['none']:.2f} ({100 * sum(ours.kept) / len(ours.kept):.0f} %)"
                for spec, ours in runs.items()
            ),
        )
    return table


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = tyro.cli(Args, args=argv, prog="scripts/bench", description=__doc__)
    unknown = [name for name in args.task if name not in TASKS]
    if unknown:
        raise UsageError(f"unknown task {unknown[0]!r}; there is: {', '.join(TASKS)}")
    if args.rounds < 1:
        raise UsageError(f"--rounds must be 1 or more, got {args.rounds}")
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 130)
    tasks = [TASKS[name] for name in args.task]
    console.print(speed_table(tasks, args))
    console.print(filter_table(tasks, args))


if __name__ == "__main__":
    sys.exit(run_command(main))
