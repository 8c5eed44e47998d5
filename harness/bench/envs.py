"""How many environment steps a second do the two backends make?

    scripts/bench_envs
    scripts/bench_envs --env highway-v0 --seconds 2

Random actions, one process, one thread for each backend; only ratios travel to other machines.
"""

import sys
import time
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from algos.envs.interface import Backend
from algos.envs.vector import make_vector_env
from filters.errors import UsageError, run_command
from filters.registry import suggest
from harness.tasks.catalogue import TASKS


@dataclass(frozen=True)
class Args:
    """Measure the environments of all tasks, with as many side by side as a task has and with 16."""

    env: tuple[str, ...] = ()
    """environment ids to measure; those of all tasks if none is named"""
    seconds: float = 0.4
    """length of one measurement"""
    repeats: int = 3
    """measurements of each; the best counts"""


@dataclass(frozen=True)
class Case:
    """An environment with its options, N times side by side."""

    env_id: str
    options: tuple[tuple[str, Any], ...]
    num_envs: int

    def steps_per_second(self, backend: Backend, *, seconds: float, repeats: int) -> float:
        """Steps a second of all environments together, resets included. Raises UsageError if it can't run."""
        envs = make_vector_env(self.env_id, self.num_envs, dict(self.options), backend)
        envs.reset(list(range(self.num_envs)))
        actions = random_actions(envs.action_space, self.num_envs)
        best = 0.0
        envs.step(actions[0])
        for _ in range(repeats):
            start = time.perf_counter()
            count = 0
            while (elapsed := time.perf_counter() - start) < seconds:
                envs.step(actions[count % len(actions)])
                count += 1
            best = max(best, count * self.num_envs / elapsed)
        envs.close()
        return best


def random_actions(space: gym.Space[Any], num_envs: int, count: int = 1009) -> NDArray[Any]:
    """Uniform actions [count, N, *act], drawn beforehand."""
    rng = np.random.default_rng(0)
    if isinstance(space, gym.spaces.Box):
        return rng.uniform(space.low, space.high, (count, num_envs, *space.shape)).astype(np.float32)
    assert isinstance(space, gym.spaces.Discrete)
    return rng.integers(int(space.n), size=(count, num_envs))


def find_cases(env_ids: tuple[str, ...]) -> list[Case]:
    """Every environment of the tasks once for each N, smoke tasks left out, N = 16 with them."""
    cases: dict[Case, None] = {}
    for task in TASKS.values():
        if not task.id.startswith("smoke-"):
            options = tuple(sorted(task.args.env_kwargs.items()))
            for num_envs in (task.args.num_envs, 16):
                cases[Case(task.args.env_id, options, num_envs)] = None
    known = sorted({case.env_id for case in cases})
    for env_id in env_ids:
        if env_id not in known:
            raise UsageError(f"no task has the environment {env_id!r}; {suggest(env_id, known)}")
    return sorted(
        (case for case in cases if not env_ids or case.env_id in env_ids), key=lambda case: (case.env_id, case.num_envs)
    )


def measure(case: Case, args: Args) -> tuple[str, str, str]:
    """Steps a second on either backend and their ratio, each a dash where it can't run."""
    speeds = []
    for backend in ("gymnasium", "envpool"):
        try:
            speeds.append(case.steps_per_second(backend, seconds=args.seconds, repeats=args.repeats))
        except UsageError:
            speeds.append(float("nan"))
    cells = [f"{speed:,.0f}" if speed == speed else "–" for speed in speeds]
    ratio = speeds[1] / speeds[0]
    return cells[0], cells[1], f"{ratio:.1f}" if ratio == ratio else "–"


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = tyro.cli(Args, args=argv, prog="scripts/bench_envs", description=__doc__)
    cases = find_cases(args.env)
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="environment steps a second, best of a few", title_justify="left")
    for column in ("environment", "N", "gymnasium", "envpool", "ratio"):
        table.add_column(column, justify="left" if column == "environment" else "right")
    for case in cases:
        options = ", ".join(f"{name}={value}" for name, value in case.options)
        table.add_row(f"{case.env_id} {options}".strip(), str(case.num_envs), *measure(case, args))
    console.print(table)


if __name__ == "__main__":
    sys.exit(run_command(main))
