"""What does one intervention do? A round's update with the filter, without it, and with a random drop of that size.

python -m harness.intervene --task FrozenLake --filter iif:fraction=1 --rounds 8 --seeds 3
python -m harness.intervene --task FrozenLake --filter iif:reference=frozenlake.ref --rounds 2,10,20,30
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from harness.drawing.figures import interval
from harness.looking.intervention import intervene, plan, write_summary
from harness.looking.jobs import Look
from harness.sweeps.plan import parse_seeds
from harness.sweeps.side_by_side import run_side_by_side
from leaderboard.runs.jsonfile import Json


@dataclass(frozen=True)
class Args(Look):
    """Intervene in single rounds of plain PPO, each from the same parameters, and compare what the updates achieve.

    In each round the ordinary update, the filtered one and one without as many random records start from the same
    parameters and go through the records in the same order; training then goes on with the ordinary one, so the rounds
    are independent interventions. Δ f_return is measured on the round's own records (with a filter of a fixed
    reference, on that reference), Δ test return in fresh episodes: the same seeds and the same draws for every arm and
    round. Seeds that are finished stay; the same command goes on with the others.
    """

    task: str = "FrozenLake"
    """task to intervene in"""
    filter: str = "iif"
    """the filter of the intervention; iif:reference=FILE measures against a fixed reference"""
    rounds: str = "8"
    """rounds to intervene in: 8 means the first eight, 2,5,10 those"""
    seeds: str = "3"
    """how many seeds (3 means 0 to 2), or a list of them (0,3,7; a single one as 3,)"""
    episodes: int = 0
    """test episodes of each arm; 0 means the task's own number"""
    out: Path = Path("runs/figures/intervene")
    """folder of the findings"""

    def __post_init__(self) -> None:
        if self.episodes < 0:
            raise UsageError(f"--episodes must be 0 (the task's own number) or more, got {self.episodes}")


def main(argv: list[str] | None = None) -> int:
    """Intervene, write, and print what came of it."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.intervene", description=__doc__)
    jobs = plan(args, seeds=parse_seeds(args.seeds), rounds=args.rounds)
    found = run_side_by_side(partial(intervene, episodes=args.episodes), jobs, jobs=args.jobs)
    folder = jobs[0].folder.parent
    print(*sentences(write_summary(found, folder)), sep="\n")
    print(f"numbers and figures: {folder}")
    return 0


def sentences(summary: Json) -> list[str]:
    """What came of it, a line a comparison."""
    said = []
    for name, found in summary["paired"].items():
        over = found["interventions"]
        said.append(f"Δ {name}: {interval(over)} over {over['n']} interventions, {interval(found['seeds'])} over seeds")
    return said


if __name__ == "__main__":
    sys.exit(run_command(main))
