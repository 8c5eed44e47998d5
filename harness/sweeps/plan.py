"""Which cells does a sweep consist of, and which of them are still to run?"""

import math
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from rich.console import Console

from algos.envs.vector import make_vector_env
from algos.training.compiled import Compile, has_compiler, pays
from filters.errors import UsageError
from filters.registry import canonical, expand, names
from harness.cells.cell import Cell, changed_sources, forget_failure, is_complete, is_failed, make_filter
from harness.sweeps import machine
from harness.sweeps.devices import Device, device_of_past_runs, faster_device
from harness.tasks import own, recipe
from harness.tasks.catalogue import SEEDS, seeds_of
from harness.tasks.recipe import AgentName
from harness.tasks.task import Task
from leaderboard.runs.store import status

BASELINE = "none"
LONGEST_NAME = 255
"""bytes of a file's name on common file systems"""
PROBE_BYTES = 65_536
"""what there must be room for before a sweep starts"""
LARGEST_SEED, MOST_SEEDS = 2**31 - 1, 100_000
LARGEST = {
    **{"eval_episodes": 1_000_000, "eval_every": 10**9, "checkpoint_every": 10**9},
    **{"jobs": 65_536, "steps": 10**12},
}
"""by option: far beyond any sense, and small enough for every place where the number goes"""


@dataclass(frozen=True)
class Sweep:
    """Filters across tasks and matched seeds, next to the baseline: everything that decides the cells."""

    filter: Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction] = ()
    """filter specs (iif, random:fraction=0.06), families of them (iif:fraction={0.05,0.125}), import paths
    (my_pkg.my_mod:MyFilter), or all"""
    suite: str = "quick"
    """the suite of tasks to run"""
    task: tuple[str, ...] = ()
    """tasks to run instead of a suite"""
    env: str = ""
    """an environment to make a task of instead: a Gymnasium id, as in my_pkg.my_mod:my/Env-v0"""
    agent: AgentName = "auto"
    """with --env: what trains on it; auto chooses by the environment's spaces"""
    like: str = ""
    """with --env: a task whose settings to begin with, as in LunarLander-adam"""
    set: Annotated[tuple[tuple[str, ...], ...], tyro.conf.UseAppendAction] = ()
    """with --env: settings of the agent, as in learning_rate=3e-4 num_envs=8"""
    steps: int = 0
    """with --env: environment steps to train for; 0 means those of the agent or of --like"""
    random: float | None = None
    """with --env: mean return of a random policy, the 0 of scores; measured at the first use unless said"""
    solved: float | None = None
    """with --env: return of a good policy, the 1 of scores; the environment's own threshold, else the best evaluation
    seen, unless said"""
    seeds: str = ""
    """how many seeds (5 means 0 to 4), a range (5-9), or a list (0,3,7; a single one as 3,); the suite's own number,
    which is mostly 5, by default"""
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
    out: Path = Path("runs")
    """folder of the run directories"""
    baseline: bool = True
    """run the baseline `none` as well"""
    cell_timeout: float = 0.0
    """seconds after which a cell is ended and counts as failed; 0 means no limit"""


def plan(sweep: Sweep, *, here: bool = True) -> list[Cell]:
    """All cells of the sweep: the longest task first, seed by seed, the filters of one seed next to each other in time.

    Args:
        sweep: what to run.
        here: the cells run on this machine.

    Raises:
        UsageError: for anything on the command line that does not exist or can't be.
    """
    check_numbers(sweep)
    tasks = pick_tasks(sweep)
    specs = filter_specs(sweep, tasks)
    devices = {task: pick_device(sweep.device, task, sweep.out, here=here) for task in tasks}
    tasks = [with_compile(task, devices[task], sweep.compile) for task in tasks]
    if sweep.jobs < 0:
        raise UsageError(f"--jobs must be 0 or more, got {sweep.jobs}")
    if not 0 <= sweep.cell_timeout < threading.TIMEOUT_MAX:
        raise UsageError(f"--cell-timeout must be 0 (no limit) or more seconds, got {sweep.cell_timeout:g}")
    jobs = sweep.jobs or machine.jobs()
    seeds = parse_seeds(sweep.seeds or str(SEEDS if sweep.task or sweep.env else seeds_of(sweep.suite)))
    cells = [
        Cell(task=task, spec=spec, seed=seed, out=sweep.out, device=devices[task], jobs=jobs, trace=sweep.trace)
        for task in sorted(tasks, key=lambda task: task.work, reverse=True)
        for seed in seeds
        for spec in specs
    ]
    for cell in cells:
        make_filter(cell)
        if max(len(part.encode()) for part in cell.path.parts) > LONGEST_NAME:
            raise UsageError(f"filter {cell.spec[:60]}… is too long for the name of a folder; shorten its fields")
    for task in tasks:
        make_vector_env(task.args.env_id, 1, task.args.env_kwargs, task.args.env_backend).close()
    return cells


def pick_tasks(sweep: Sweep) -> list[Task]:
    """The tasks of the command line, none twice, on its backend and with its evaluation protocol."""
    check_env_options(sweep)
    if sweep.eval_episodes < 0 or sweep.eval_every < 0:
        raise UsageError("--eval-episodes and --eval-every must be 0 or more")
    if sweep.checkpoint_every < 0:
        raise UsageError(f"--checkpoint-every must be 0 or more rounds, got {sweep.checkpoint_every}")
    if sweep.paper_eval and (sweep.eval_episodes or sweep.eval_every):
        raise UsageError("--paper-eval sets the evaluation protocol; leave out --eval-episodes and --eval-every")
    if sweep.env:
        tasks: Sequence[Task] = [recipe.build(recipe_of(sweep), cache=sweep.out / "references", say=recipe.to_stderr)]
    else:
        tasks = [own.find(name) for name in sweep.task] if sweep.task else own.find_tasks(sweep.suite)
    return [
        task.varied(
            env_backend=None if sweep.env_backend == "task" else sweep.env_backend,
            eval_episodes=task.paper_episodes if sweep.paper_eval else sweep.eval_episodes,
            eval_every=1 if sweep.paper_eval else sweep.eval_every,
            apply=None if sweep.apply == "filter" else sweep.apply,
            checkpoint_every=sweep.checkpoint_every,
            corrupt=sweep.corrupt,
        )
        for task in dict.fromkeys(tasks)
    ]


def check_env_options(sweep: Sweep) -> None:
    """Raise UsageError for options of --env without it, and for tasks besides it."""
    if sweep.env and sweep.task:
        raise UsageError("say either --task or --env")
    asked = {"--agent": sweep.agent != "auto", "--like": sweep.like, "--set": sweep.set, "--steps": sweep.steps}
    asked |= {"--random": sweep.random is not None, "--solved": sweep.solved is not None}
    stray = [name for name, said in asked.items() if said]
    if stray and not sweep.env:
        raise UsageError(f"{stray[0]} is for an environment of your own; say which with --env")
    if sweep.steps < 0:
        raise UsageError(f"--steps must be 0 (the agent's own number) or more, got {sweep.steps}")
    for name, value in (("--random", sweep.random), ("--solved", sweep.solved)):
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{name} must be a finite number, got {value}")


def recipe_of(sweep: Sweep) -> recipe.Recipe:
    """What to make a task of."""
    return recipe.Recipe(
        env=sweep.env,
        agent=sweep.agent,
        like=sweep.like,
        settings=tuple(setting for group in sweep.set for setting in group),
        steps=sweep.steps,
        random=sweep.random,
        solved=sweep.solved,
    )


def filter_specs(sweep: Sweep, tasks: Sequence[Task]) -> list[str]:
    """Canonical specs of the filters asked for, the baseline first; one that two spellings mean is there once."""
    asked = [spec for group in sweep.filter for spec in group]
    if not asked:
        raise UsageError(f"say which filter to run with --filter; there is: {', '.join(names())}")
    words = [spec for word in asked for spec in (names() if word == "all" else expand(word))]
    defaults = [task.filter_defaults for task in tasks]
    specs = [canonical(word, defaults) for word in words]
    return list(dict.fromkeys(([BASELINE] if sweep.baseline else []) + specs))


def check_numbers(sweep: Sweep) -> None:
    """Raise UsageError for numbers that no sweep can mean, before anything trains."""
    for name, value in vars(sweep).items():
        if name in LARGEST and value > LARGEST[name]:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} may be {LARGEST[name]:,} at most, got {value:,}")


def parse_seeds(text: str) -> tuple[int, ...]:
    """`5` -> 0..4; `5-9` -> 5..9; `0,3,7` -> those; `3,` -> just 3; `0,5-7` -> 0, 5, 6, 7."""
    words = [word for word in text.replace(" ", "").split(",") if word]
    if not all(re.fullmatch(r"\d+(-\d+)?", word) for word in words):
        words = []
    ends = [[int(end) for end in word.split("-")] for word in words]
    largest = max((end for pair in ends for end in pair), default=0)
    if largest > LARGEST_SEED or sum(pair[-1] - pair[0] for pair in ends) > MOST_SEEDS:
        raise UsageError(f"--seeds {text[:40]}: seeds lie in 0..{LARGEST_SEED:,}, and there are {MOST_SEEDS:,} at most")
    numbers = [seed for pair in ends for seed in range(pair[0], pair[-1] + 1)]
    if len(ends) == 1 and len(ends[0]) == 1 and "," not in text:
        if numbers[0] > MOST_SEEDS:
            raise UsageError(f"--seeds {text[:40]}: there are {MOST_SEEDS:,} at most; a single one is {numbers[0]},")
        numbers = list(range(numbers[0]))
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(
            f"--seeds takes a number of seeds such as 5, a range such as 5-9, or different seeds such as 0,3,7; got "
            f"{text[:40]!r}"
        )
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
