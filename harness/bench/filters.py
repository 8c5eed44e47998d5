"""What does each filter cost? Seconds, passes over the batch, share of a round and memory, next to naive gradients.

    scripts/bench_filters
    scripts/bench_filters --filter iif dtv-loo --repeats 9

Everything is measured on one thread in one run; only ratios travel to other machines.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from algos import ppo_minigrid
from algos.training.recorder import SilentRecorder
from filters.api import Objective, Rollout, Selection, keep_all, run_filter
from filters.cost import best_seconds, peak_memory
from filters.errors import run_command
from filters.registry import make, names
from harness.tasks.catalogue import TASKS

DOORKEY = ppo_minigrid.Args(env_id="MiniGrid-DoorKey-8x8-v0", num_steps=640, minibatch_size=256, update_epochs=4)


@dataclass(frozen=True)
class Args:
    """Measure the filters on three rollouts: 2,048 records of an MLP and of a conv net, 10,240 of a conv net."""

    filter: tuple[str, ...] = ()
    """filters to measure; all built-in ones if none is named"""
    repeats: int = 5
    """measurements of each; the best counts"""


@dataclass(frozen=True)
class Bench:
    """A rollout of a real agent, its objective, and the pieces that a round consists of."""

    name: str
    module: Any
    args: Any
    state: Any
    rollout: Rollout
    objective: Objective
    collect_seconds: float

    def backward(self) -> None:
        """One full-batch forward and backward pass of the whole training loss: the unit of cost."""
        batch = self.module.columns(self.rollout)
        policy_loss, value_loss, entropy = self.module.ppo_losses(self.state.agent.policy_and_value, batch, self.args)
        (policy_loss + self.args.value_coef * value_loss - self.args.entropy_coef * entropy).mean().backward()
        self.state.optimizer.zero_grad()

    def update(self) -> None:
        """The update of a round on all records."""
        self.module.update(self.state, self.rollout, keep_all(self.rollout), "repack", self.args)

    def vmap_gradients(self) -> dict[str, torch.Tensor]:
        """Naive per-record gradients [n, …] of the policy loss."""
        module, args, agent = self.module, self.args, self.state.agent
        batch = module.columns(self.rollout).normalized()

        def loss(params: dict[str, torch.Tensor], *record: torch.Tensor) -> torch.Tensor:
            one = module.Batch(*(column.unsqueeze(0) for column in record))
            policy_loss, _, _ = module.ppo_losses(
                lambda obs: (torch.func.functional_call(agent, params, (obs,)), one.values), one, args
            )
            total: torch.Tensor = policy_loss.sum()
            return total

        in_dims = (None, *(0 for _ in batch))
        found: dict[str, torch.Tensor] = torch.func.vmap(torch.func.grad(loss), in_dims=in_dims)(
            self.objective.params, *batch
        )
        return found

    def naive_iif(self) -> None:
        """IIF's scores from per-record gradients."""
        direction = torch.func.grad(self.objective.target)(self.objective.params)
        for name, gradients in self.vmap_gradients().items():
            gradients.flatten(1) @ direction[name].flatten()

    def naive_dtv(self) -> None:
        """DTV-Loo's scores from per-record gradients."""
        units = self.rollout.num_trajectories
        for gradients in self.vmap_gradients().values():
            flat = gradients.flatten(1)
            per_unit = flat.new_zeros(units, flat.shape[1]).index_add_(0, self.rollout.trajectory, flat)
            per_unit /= self.rollout.trajectory.bincount()[:, None]
            per_unit @ per_unit.mean(0) - per_unit.square().sum(1) / units


def open_bench(name: str, module: Any, args: Any) -> Bench:
    """Collect one rollout of a fresh agent."""
    state = module.open_state(args)
    start = time.perf_counter()
    rollout, _ = module.collect(state, args, SilentRecorder())
    seconds = time.perf_counter() - start
    return Bench(name, module, args, state, rollout, module.open_objective(state.agent, rollout, args), seconds)


def select_with(bench: Bench, spec: str) -> Callable[[], Selection]:
    """One call of the filter on the rollout."""
    chosen = make(spec, TASKS["MiniGrid-Empty-8x8/v3"].filter_defaults)
    return lambda: run_filter(chosen, bench.rollout, bench.objective)


def measure(bench: Bench, specs: list[str], *, repeats: int, console: Console) -> None:
    """Print the table of one rollout."""
    unit_memory = peak_memory(bench.backward)
    rows = {spec: select_with(bench, spec) for spec in specs}
    naive = {"per-record gradients: iif": bench.naive_iif, "per-record gradients: dtv-loo": bench.naive_dtv}
    memory = {name: peak_memory(work) for name, work in (rows | naive).items()}
    # In turn, so that a slow moment of the machine meets all of them.
    turns = [{name: best_seconds(work, 1) for name, work in (rows | naive).items()} for _ in range(repeats)]
    unit = min(best_seconds(bench.backward, 1) for _ in range(3 * repeats))
    seconds = {name: min(turn[name] for turn in turns) for name in turns[0]}
    collected = bench.collect_seconds + best_seconds(bench.update, 1)  # last: it moves the parameters

    title = f"{bench.name}: {bench.rollout.n:,} records, {bench.rollout.num_trajectories} trajectories"
    table = Table(title=f"{title}; one pass {unit * 1e3:.1f} ms, {unit_memory:.0f} MiB", title_justify="left")
    for column in ("filter", "ms", "passes", "share of a round %", "peak MiB", "of naive time", "of naive memory"):
        table.add_column(column, justify="left" if column == "filter" else "right")
    for name in seconds:
        peer = f"per-record gradients: {'dtv-loo' if name.startswith('dtv') else 'iif'}"
        share = 100 * seconds[name] / (collected + seconds[name])
        table.add_row(
            name,
            f"{seconds[name] * 1e3:.1f}",
            f"{seconds[name] / unit:.1f}",
            f"{share:.1f}",
            f"{memory[name]:.0f}",
            f"1/{seconds[peer] / seconds[name]:.1f}",
            f"1/{memory[peer] / max(memory[name], 0.1):.1f}",
        )
    console.print(table)


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    args = tyro.cli(Args, args=argv, prog="scripts/bench_filters", description=__doc__)
    specs = list(args.filter) or names()
    for spec in specs:
        make(spec)
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 120)
    settings = {
        "MLP 64-64 (Acrobot)": TASKS["Acrobot/v1"],
        "conv, separate heads (MiniGrid-Empty-8x8)": TASKS["MiniGrid-Empty-8x8/v3"],
    }
    benches = [(name, task.module, task.args) for name, task in settings.items()]
    for name, module, agent_args in [*benches, ("conv, linear heads (MiniGrid-DoorKey-8x8)", ppo_minigrid, DOORKEY)]:
        bench = open_bench(name, module, replace(agent_args, seed=0))
        measure(bench, specs, repeats=args.repeats, console=console)


if __name__ == "__main__":
    sys.exit(run_command(main))
