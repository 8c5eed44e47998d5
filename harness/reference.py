"""How does a fixed reference for IIF come about? From a trained policy and one rollout of its own.

python -m harness.reference --task FrozenLake --seed 100 --file frozenlake.ref
python -m harness.run --task FrozenLake --filter iif iif:reference=frozenlake.ref
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro

from algos.training.alone import ConsoleRecorder
from filters.errors import UsageError, run_command
from filters.gradients.reference import Reference
from filters.registry import make
from harness.tasks.catalogue import find_task


@dataclass(frozen=True)
class Args:
    """Train plain PPO on a task and keep its policy with one rollout as the reference of `iif:reference=FILE`."""

    task: str
    """task to train on"""
    file: Path
    """where the reference goes"""
    seed: int = 100
    """seed of the training; none that is compared with later"""
    events: Path = Path("runs/reference")
    """folder of the TensorBoard events"""


def main(argv: list[str] | None = None) -> None:
    """Train, collect, save."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.reference", description=__doc__)
    task = find_task(args.task)
    if not args.file.parent.is_dir():
        raise UsageError(f"the folder of {args.file} does not exist; make it or choose another --file")
    torch.set_num_threads(1)
    settings = replace(task.args, seed=args.seed)
    recorder = ConsoleRecorder(args.events, settings)
    agent = task.module.train(settings, make("none"), recorder)
    state = task.module.open_state(settings)
    state.agent = agent
    rollout, _ = task.module.collect(state, settings, recorder)
    recorder.close()
    params = {name: p.detach() for name, p in agent.named_parameters()}
    Reference(task.id, params, rollout.obs, rollout.actions, rollout.advantages).save(args.file)
    print(f"wrote {args.file}; use it as iif:reference={args.file}")


if __name__ == "__main__":
    sys.exit(run_command(main))
