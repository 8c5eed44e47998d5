"""What is measured: rounds of our agents as `train` makes them, of a peer, and of cells side by side."""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from algos.envs.evaluate import make_evaluator
from algos.envs.single import make_env
from algos.training.recorder import SilentRecorder
from filters.api import run_filter
from filters.errors import UsageError
from filters.registry import make
from harness.cells.cell import Cell
from harness.sweeps.launch import Event, run_cells
from harness.tasks.task import Task

PAST_WARMUP = 100
"""added to the round's number, so that no filter lets a round pass unfiltered"""


class Ours:
    """Rounds of one of our agents on one task: collect, filter, update. The settings are those of a run."""

    def __init__(self, task: Task, *, spec: str = "none", **settings: Any) -> None:
        self.module, self.args = task.module, replace(task.args, **settings)
        start = time.perf_counter()
        self.state = self.module.open_state(self.args)
        self.startup = time.perf_counter() - start
        self.filter = make(spec, task.filter_defaults)
        self.recorder = SilentRecorder()
        self.kept: list[float] = []

    def round(self) -> None:
        """One round as `train` makes it."""
        clock = self.recorder.clock
        rollout, _ = self.module.collect(self.state, self.args, self.recorder)
        clock.start("filter")
        rollout = replace(rollout, round=self.state.round + PAST_WARMUP)
        objective = self.module.open_objective(self.state.agent, rollout, self.args)
        selection = run_filter(self.filter, rollout, objective)
        clock.start("update")
        self.module.update(self.state, rollout, selection, self.filter.apply, self.args)
        if self.args.device == "cuda":
            torch.cuda.synchronize()
        clock.start("logging")
        self.kept.append(float(selection.keep.float().mean()))
        self.state.round += 1

    def rounds(self, count: int) -> Callable[[], None]:
        """That many rounds, as something to time."""

        def work() -> None:
            for _ in range(count):
                self.round()

        return work

    def steps(self, batches: list[Any]) -> Callable[[], None]:
        """An optimizer step on each of these minibatches, as something to time."""

        def work() -> None:
            for mb in batches:
                self.state.calls.step(mb)
            if self.args.device == "cuda":
                torch.cuda.synchronize()

        return work

    def evaluate(self) -> None:
        """One evaluation, as the task's protocol has it."""
        args = self.args
        evaluator = make_evaluator(args.env_id, args.env_kwargs, args.env_backend, args.eval_episodes)

        def act(obs: Any) -> Any:
            with torch.inference_mode():
                distribution = self.state.agent(self.module.tensor(obs, args.device))
                return self.module.sample(distribution, self.state.rngs["evaluation"]).cpu().numpy()

        self.recorder.clock.start("evaluation")
        evaluator.play(act, list(range(args.eval_episodes)))
        self.recorder.clock.start("logging")
        evaluator.close()

    def minibatches(self, count: int) -> list[Any]:
        """Minibatches of a rollout of its own."""
        rollout, _ = self.module.collect(self.state, self.args, SilentRecorder())
        records = self.module.columns(rollout)
        order = torch.randperm(rollout.n, device=self.args.device)
        chunks = order[: rollout.n // self.args.minibatch_size * self.args.minibatch_size].split(
            self.args.minibatch_size
        )
        return [records.at(chunks[i % len(chunks)]) for i in range(count)]


def peer_rounds(task: Task, rounds: int, device: str) -> Callable[[], None]:
    """As many rounds of Stable-Baselines3's PPO with the same network, settings and environments."""
    try:
        from harness.bench.peer import make_peer
    except ImportError as error:
        raise UsageError(f"{error}; install the peer with pip install 'filtergym[bench]', or say --no-peer") from error
    model = make_peer(task, lambda: make_env(task.args.env_id, task.args.env_kwargs), device)
    model.learn(task.args.batch_size)  # to warm up

    def learn() -> None:
        model.learn(rounds * task.args.batch_size, reset_num_timesteps=False)

    return learn


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(works: dict[str, Callable[[], None]], *, times: int = 2) -> dict[str, float]:
    """Least seconds of each, measured in turn so that a slow moment of the machine meets all of them."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(times):
        for name, work in works.items():
            found[name].append(seconds(work))
    return {name: min(values) for name, values in found.items()}


def cut(task: Task, rounds: int) -> Task:
    """The task with that many rounds and nothing but one short evaluation at their end."""
    steps = rounds * task.args.batch_size
    return replace(task, args=replace(task.args, total_steps=steps, eval_every=rounds, eval_episodes=1))


def throughput(task: Task, jobs: int, rounds: int) -> float:
    """Training steps per second of `jobs` cells side by side, from when all run until the first ends."""
    times: list[tuple[float, int, bool]] = []

    def on_event(event: Event) -> None:
        times.append((time.perf_counter(), event.rounds_done, event.ended))
        if event.error:
            raise UsageError(f"a cell of the benchmark failed: {event.error}")

    with tempfile.TemporaryDirectory() as folder:
        cells = [Cell(cut(task, rounds), "none", seed, Path(folder), jobs=jobs) for seed in range(jobs)]
        run_cells(cells, jobs=jobs, on_event=on_event)
    begin = [when for when, done, _ in times if done == 1][-1]
    end = next(when for when, _, ended in times if ended)
    within = sum(begin < when <= end for when, done, _ in times if done > 1)
    return within * task.args.batch_size / (end - begin)


def process_memory(task: Task, rounds: int, spec: str) -> float:
    """MiB at the peak of a fresh process that trains a cell of the task for some rounds and evaluates once."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_train_and_weigh, task, rounds, spec).result()


def _train_and_weigh(task: Task, rounds: int, spec: str) -> float:
    torch.set_num_threads(1)
    args = replace(task.args, total_steps=rounds * task.args.batch_size, eval_every=rounds)
    task.module.train(args, make(spec, task.filter_defaults), SilentRecorder())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
