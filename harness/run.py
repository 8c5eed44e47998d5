"""Which filter learns best? Runs filters and the baseline on matched seeds and ends with the comparison.

python -m harness.run --filter iif
python -m harness.run --filter iif random:fraction=0.06 --task FrozenLake --seeds 3
python -m harness.run --filter my_pkg.my_mod:MyFilter --suite quick
"""

import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import tyro
from rich.console import Console

from algos.training.compiled import has_compiler
from filters.errors import UsageError, run_command
from filters.registry import names
from harness.cells.cell import Cell
from harness.cluster import cluster as ray_cluster
from harness.cluster import launch as ray_launch
from harness.sweeps import machine
from harness.sweeps.forecast import print_forecast
from harness.sweeps.launch import OnEvent, run_cells
from harness.sweeps.plan import BASELINE, Sweep, check_writable, left_to_run, plan, tally
from harness.sweeps.progress import SweepProgress
from harness.sweeps.summary import print_summary
from harness.tasks.catalogue import SUITES, TASKS
from harness.tasks.own import outside
from leaderboard.report import print_report
from leaderboard.runs.store import status


class Launcher(Protocol):
    """Runs cells, at most `jobs` at a time and each for at most `timeout` seconds, and tells how far they are."""

    def __call__(self, cells: Sequence[Cell], *, jobs: int, on_event: OnEvent, timeout: float | None) -> None:
        """Until every cell is complete or failed."""


@dataclass(frozen=True)
class Args(Sweep):
    """Run filters across tasks and matched seeds, next to the baseline, and compare them.

    Complete runs are skipped, so an interrupted sweep goes on with the same command. Failed ones stay failed unless
    --retry-failed is said.
    """

    launcher: Literal["local", "ray"] = "local"
    """what runs the cells: processes on this machine, or Ray (an extra) on a cluster"""
    ray_address: str = "local"
    """the Ray cluster: local starts one here, auto finds the one that this machine is part of; or host:port"""
    collect: bool = False
    """with Ray: send the files of a cell back to this machine; else --out has to be a folder that all nodes share"""
    cell_cpus: float = 1.0
    """with Ray: CPUs to set aside for a cell"""
    cell_gpus: float = 0.25
    """with Ray and --device cuda: GPUs to set aside for a cell"""
    retry_failed: bool = False
    """run cells that have failed before once more; without it they stay as they are"""
    dry_run: bool = False
    """say what would run, how long it may take and how much disk it needs, and stop"""
    report: bool = True
    """end with the comparison"""
    quiet: bool = False
    """no progress bar, only a line for every cell that ends"""
    json: bool = False
    """end with a summary in JSON on standard output; everything else goes to standard error"""
    list: bool = False
    """list filters, tasks and suites, and stop"""


def main(argv: list[str] | None = None) -> int:
    """Parse the command line, run what is missing, and print the comparison; returns the exit code."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.run", description=__doc__)
    stream = sys.stderr if args.json else sys.stdout
    console = Console(width=None if stream.isatty() else 110, file=stream)
    if args.list:
        print_list(console)
        return 0
    cells = plan(args, here=not on_cluster(args))
    if args.compile == "on" and not has_compiler():
        print("--compile on: no C++ compiler or no Python headers here; going on without compiling", file=sys.stderr)
    if args.dry_run:
        print_forecast(cells, jobs=args.jobs or machine.jobs(), out=args.out, console=console)
        return 0
    launch = pick_launcher(args)
    check_writable(args.out)
    missing = left_to_run(cells, retry_failed=args.retry_failed, console=console)
    most = len(missing) if on_cluster(args) else machine.jobs()
    jobs = min(args.jobs or most, max(len(missing), 1))
    where = f"at most {jobs} side by side on the Ray cluster" if on_cluster(args) else f"{jobs} side by side"
    console.print(f"{tally(cells, missing)}; {where}")
    argv = sys.argv[1:] if argv is None else argv
    sweep(missing, args, launch, jobs=jobs, console=console, argv=argv)
    baseline = BASELINE if args.baseline else None
    paths = [cell.path for cell in cells]
    code = print_report(paths, baseline=baseline, console=console) if args.report else failed(paths)
    if args.json:
        print_summary(cells, baseline=baseline)
    return code


def failed(paths: Sequence[Path]) -> int:
    """The exit code of a sweep: 1 if a cell has failed or was never finished."""
    return int(any(status(path) != "complete" for path in paths))


def on_cluster(args: Args) -> bool:
    """Whether the cells run on other machines than this one."""
    return args.launcher == "ray" and args.ray_address != "local"


def pick_launcher(args: Args) -> Launcher:
    """What runs the cells; raises UsageError if it is not installed or not what the other options are for."""
    if args.launcher == "local":
        if args.ray_address != "local" or args.collect:
            raise UsageError("--ray-address and --collect are for Ray; add --launcher ray")
        return run_cells
    if args.cell_cpus <= 0 or args.cell_gpus <= 0:
        raise UsageError("--cell-cpus and --cell-gpus must be above 0")
    ray_cluster.import_ray(args.ray_address)
    cluster = ray_cluster.Cluster(args.ray_address, args.collect, cpus=args.cell_cpus, gpus=args.cell_gpus)
    return partial(ray_launch.run_cells, cluster=cluster)


def sweep(cells: list[Cell], args: Args, launch: Launcher, *, jobs: int, console: Console, argv: list[str]) -> None:
    """Run the cells with a display of progress; a cell that fails leaves its failure on disk."""
    if not cells:
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = SweepProgress(console, cells, quiet=args.quiet)
    try:
        with progress:
            launch(cells, jobs=jobs, on_event=progress.on_event, timeout=args.cell_timeout or None)
    except KeyboardInterrupt:
        command = shlex.join(["python", "-m", "harness.run", *argv])
        print(f"interrupted; what is complete stays so. To go on: {command}", file=sys.stderr)
        raise SystemExit(130) from None


def print_list(console: Console) -> None:
    """Print filters, tasks and suites."""
    console.print("filters", style="bold")
    console.print("  " + ", ".join(names()) + ", or an import path such as my_pkg.my_mod:MyFilter")
    console.print("tasks", style="bold")
    width = max(map(len, TASKS))
    for task in TASKS.values():
        console.print(f"  {task.id:{width}}  {task.about}", highlight=False)
    tasks, suites = outside()
    for name, place in tasks.items():
        console.print(f"  {name:{width}}  of an installed package, {place}", highlight=False)
    console.print(
        f"  {'or':{width}}  an import path (my_pkg.my_mod:MY_TASK), or an environment (--env)", highlight=False
    )
    console.print("suites", style="bold")
    for name, members in SUITES.items():
        console.print(f"  {name}: {', '.join(members)}", highlight=False)
    for name, place in suites.items():
        console.print(f"  {name}: of an installed package, {place}", highlight=False)


if __name__ == "__main__":
    sys.exit(run_command(main))
