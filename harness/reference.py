"""How does a fixed reference for IIF come about? From a trained policy and one rollout of its own.

python -m harness.reference --task FrozenLake --seed 100 --file frozenlake.ref
python -m harness.run --task FrozenLake --filter iif iif:reference=frozenlake.ref
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from harness.rounds.reference import make_reference
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
    make_reference(task, seed=args.seed, events=args.events).save(args.file)
    print(f"wrote {args.file}; use it as iif:reference={args.file}")


if __name__ == "__main__":
    sys.exit(run_command(main))
