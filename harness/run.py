"""Which filter learns best? Runs filters and the baseline on matched seeds and ends with the comparison.

python -m harness.run --filter iif
python -m harness.run --filter iif random:fraction=0.06 --task FrozenLake --seeds 3
python -m harness.run --filter my_pkg.my_mod:MyFilter --suite quick
"""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Protocol

import torch
import tyro
from rich.console import Console

from algos.envs.vector import make_vector_env
from algos.training.compiled import Compile, has_compiler, pays
from filters.errors import UsageError, run_command
from filters.registry import names, parse
from harness.cells.cell import Cell, changed_sources, forget_failure, is_complete, is_failed, make_filter
from harness.cluster import cluster as ray_cluster
from harness.cluster import launch as ray_launch
from harness.sweeps import machine
from harness.sweeps.devices import Device, device_of_past_runs, faster_device
from harness.sweeps.forecast import print_forecast
from harness.sweeps.launch import OnEvent, run_cells
from harness.sweeps.progress import SweepProgress
from harness.sweeps.summary import print_summary
from harness.tasks.catalogue import SUITES, TASKS, Task, find_suite, find_task
from leaderboard.report import print_report
from leaderboard.runs.store import status

BASELINE = "none"
LONGEST_NAME = 255
"""bytes of a file's name on common file systems"""
PROBE_BYTES = 65_536
"""what there must be room for before a sweep starts"""


class Launcher(Protocol):
    """Runs cells, at most `jobs` at a time and each for at most `timeout` seconds, and tells how far they are."""

    def __call__(self, cells: Sequence[Cell], *, jobs: int, on_event: OnEvent, timeout: float | None) -> None:
        """Until every cell is complete or failed."""


@dataclass(frozen=True)
class Args:
    """Run filters across tasks and matched seeds, next to the baseline, and compare them.

    Complete runs are skipped, so an interrupted sweep goes on with the same command. Failed ones stay failed unless
    --retry-failed is said.
    """

    filter: Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction] = ()
    """filter specs (iif, random:fraction=0.06), import paths (my_pkg.my_mod:MyFilter), or all"""
    suite: str = "quick"
    """the suite of tasks to run"""
    task: tuple[str, ...] = ()
    """tasks to run instead of a suite"""
    seeds: str = "5"
    """how many seeds (5 means 0 to 4), or a list of them (0,3,7; a single one as 3,)"""
    env_backend: Literal["task", "gymnasium", "envpool"] = "task"
    """what steps the environments: the task's own (mostly gymnasium, the reference), or envpool, the faster"""
    eval_episodes: int = 0
    """episodes an evaluation; 0 means the task's own number"""
    eval_every: int = 0
    """rounds between evaluations; 0 means the task's own number"""
    paper_eval: bool = False
    """evaluate as the papers do: 1,000 episodes (100 where episodes are slow) after every round"""
    apply: Literal["filter", "repack", "mask"] = "filter"
    """how dropped records leave the minibatches: as each filter says, or one way for all"""
    checkpoint_every: int = 0
    """rounds between checkpoints from which an interrupted cell goes on; 0: none. Environments start new episodes
    at each, which decides the result: let several episodes fit in between"""
    corrupt: str = "none"
    """make records harmful on purpose, KIND:FRACTION as in reward-flip:0.2; the report says who finds them"""
    trace: bool = False
    """write what each round dropped, with its scores, to trace/ in each run directory"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto takes, per task, the device on which a short round was faster, on a Ray cluster the CPU; cuda means cuda"""
    compile: Compile = "auto"
    """compile the optimizer step; auto does on a CPU with a C++ compiler, where a run is long enough to repay it"""
    jobs: int = 0
    """cells side by side, on one thread each; 0 means one a core, as far as memory allows"""
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
    out: Path = Path("runs")
    """folder of the run directories"""
    baseline: bool = True
    """run the baseline `none` as well"""
    retry_failed: bool = False
    """run cells that have failed before once more; without it they stay as they are"""
    cell_timeout: float = 0.0
    """seconds after which a cell is ended and counts as failed; 0 means no limit"""
    dry_run: bool = False
    """say what would run, how long it may take and how much disk it needs, and stop"""
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
    cells = plan(args)
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
    code = print_report([cell.path for cell in cells], baseline=baseline, console=console)
    if args.json:
        print_summary(cells, baseline=baseline)
    return code


def left_to_run(cells: list[Cell], *, retry_failed: bool, console: Console) -> list[Cell]:
    """The cells that are neither complete nor failed, and of the failed ones those that get another try.

    Raises:
        UsageError: a cell's folder holds a run of other settings or is damaged.
    """
    complete = [cell for cell in cells if is_complete(cell)]
    changed = sorted({name for cell in complete for name in changed_sources(cell)})
    if changed:
        console.print(
            f"note: some complete cells were made by another version of {', '.join(changed)}; "
            "`python -m harness.verify` names them"
        )
    done = set(complete) | {cell for cell in cells if not retry_failed and is_failed(cell)}
    missing = [cell for cell in cells if cell not in done]
    for cell in missing:
        forget_failure(cell)
    return missing


def tally(cells: list[Cell], missing: list[Cell]) -> str:
    """How many cells there are, and in which state."""
    states = [status(cell.path) for cell in cells]
    failed = states.count("failed")
    hint = f", {failed} failed before (--retry-failed runs them again)" if failed else ""
    return f"{len(cells)} cells, {states.count('complete')} of them complete{hint}, {len(missing)} to run"


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


def plan(args: Args) -> list[Cell]:
    """All cells of the sweep: the longest task first, seed by seed, the filters of one seed next to each other in time.

    Raises:
        UsageError: for anything on the command line that does not exist or can't be.
    """
    specs = filter_specs(args)
    tasks = pick_tasks(args)
    devices = {task: pick_device(args.device, task, args.out, here=not on_cluster(args)) for task in tasks}
    tasks = [with_compile(task, devices[task], args.compile) for task in tasks]
    if args.jobs < 0:
        raise UsageError(f"--jobs must be 0 or more, got {args.jobs}")
    if not 0 <= args.cell_timeout < threading.TIMEOUT_MAX:
        raise UsageError(f"--cell-timeout must be 0 (no limit) or more seconds, got {args.cell_timeout:g}")
    jobs = args.jobs or machine.jobs()
    cells = [
        Cell(task=task, spec=spec, seed=seed, out=args.out, device=devices[task], jobs=jobs, trace=args.trace)
        for task in sorted(tasks, key=lambda task: task.work, reverse=True)
        for seed in parse_seeds(args.seeds)
        for spec in specs
    ]
    for cell in cells:
        make_filter(cell)
        if max(len(part.encode()) for part in cell.path.parts) > LONGEST_NAME:
            raise UsageError(f"filter {cell.spec[:60]}… is too long for the name of a folder; shorten its fields")
    for task in tasks:
        make_vector_env(task.args.env_id, 1, task.args.env_kwargs, task.args.env_backend).close()
    return cells


def pick_tasks(args: Args) -> list[Task]:
    """The tasks of the command line, none twice, on its backend and with its evaluation protocol."""
    if args.eval_episodes < 0 or args.eval_every < 0:
        raise UsageError("--eval-episodes and --eval-every must be 0 or more")
    if args.checkpoint_every < 0:
        raise UsageError(f"--checkpoint-every must be 0 or more rounds, got {args.checkpoint_every}")
    if args.paper_eval and (args.eval_episodes or args.eval_every):
        raise UsageError("--paper-eval sets the evaluation protocol; leave out --eval-episodes and --eval-every")
    tasks = [find_task(name) for name in args.task] if args.task else find_suite(args.suite)
    return [
        task.varied(
            env_backend=None if args.env_backend == "task" else args.env_backend,
            eval_episodes=task.paper_episodes if args.paper_eval else args.eval_episodes,
            eval_every=1 if args.paper_eval else args.eval_every,
            apply=None if args.apply == "filter" else args.apply,
            checkpoint_every=args.checkpoint_every,
            corrupt=args.corrupt,
        )
        for task in dict.fromkeys(tasks)
    ]


def filter_specs(args: Args) -> list[str]:
    """Canonical specs of the filters asked for, the baseline first, none twice."""
    asked = [spec for group in args.filter for spec in group]
    if not asked:
        raise UsageError(f"say which filter to run with --filter; there is: {', '.join(names())}")
    specs = [str(parse(spec)) for word in asked for spec in (names() if word == "all" else [word])]
    return list(dict.fromkeys(([BASELINE] if args.baseline else []) + specs))


def parse_seeds(text: str) -> tuple[int, ...]:
    """`5` -> 0..4; `0,3,7` -> those; `3,` -> just 3."""
    try:
        numbers = [int(word) for word in text.replace(" ", "").split(",") if word]
    except ValueError:
        numbers = []
    if "," not in text and numbers:
        numbers = list(range(numbers[0]))
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise UsageError(f"--seeds takes a number of seeds such as 5, or different seeds such as 0,3,7; got {text!r}")
    return tuple(numbers)


def pick_device(device: Literal["auto", "cpu", "cuda"], task: Task, out: Path, *, here: bool = True) -> Device:
    """The device to train a task on; `auto` goes on with that of its past runs below `out`, or measures.

    Args:
        device: what is asked for.
        task: what to train.
        out: folder of the run directories.
        here: the cells run on this machine; elsewhere nothing can be measured, and `auto` begins with the CPU.

    Raises:
        UsageError: cuda is asked for and not there.
    """
    if device == "auto":
        return device_of_past_runs(task, out, here=here) or (faster_device(task) if here else "cpu")
    if device == "cuda" and here and not torch.cuda.is_available():
        raise UsageError("--device cuda: this PyTorch finds no CUDA device; use --device cpu or install a CUDA build")
    return device


def with_compile(task: Task, device: Device, compile: Compile) -> Task:
    """The task with `auto` decided, so that all its cells are made the same way and say so."""
    on = device == "cpu" and pays(task.args) if compile == "auto" else compile == "on" and has_compiler()
    return replace(task, args=replace(task.args, compile="on" if on else "off"))


def check_writable(out: Path) -> None:
    """Raise UsageError unless files can be written below `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".write-{os.getpid()}"
        try:
            probe.write_bytes(bytes(PROBE_BYTES))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"can't write to the output folder {out} ({error.strerror}); choose another --out") from error


def print_list(console: Console) -> None:
    """Print filters, tasks and suites."""
    console.print("filters", style="bold")
    console.print("  " + ", ".join(names()) + ", or an import path such as my_pkg.my_mod:MyFilter")
    console.print("tasks", style="bold")
    width = max(map(len, TASKS))
    for task in TASKS.values():
        console.print(f"  {task.id:{width}}  {task.about}", highlight=False)
    console.print("suites", style="bold")
    for name, tasks in SUITES.items():
        console.print(f"  {name}: {', '.join(tasks)}", highlight=False)


if __name__ == "__main__":
    sys.exit(run_command(main))
