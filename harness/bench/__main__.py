"""How fast is training, next to a well-kept implementation, and what do compiling, filters and jobs change?

    scripts/bench
    scripts/bench --rounds 5 --tables speed step
    scripts/bench --device cuda
    scripts/bench --profile profile.md

All ratios are measured in one run, the sides in turn, on one thread a process; evaluation is excluded on every side.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import torch
import tyro
from rich.console import Console

from filters.errors import UsageError, run_command
from harness.bench.profile import profile
from harness.bench.tables import TABLES, Device, Name, Setup
from harness.tasks.catalogue import find_task

TASK_IDS = ("LunarLander/v2", "MiniGrid-Empty-8x8/v3", "CartPole/v2")


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
    device: Device = "cpu"
    """where networks and updates live, on all sides"""
    profile: Path | None = None
    """write where a round's time goes to this file, and measure nothing else"""


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
    setup = Setup(args.rounds, args.device, args.peer)
    for name in args.tables:
        console.print(TABLES[name](tasks, setup))


if __name__ == "__main__":
    sys.exit(run_command(main))
