"""What are DTV's scores made of? Self- and cross-terms over training, and the trajectories that the variants dispute.

python -m harness.decompose --task MiniGrid-Empty-8x8-dtv --filter dtv-loo --rounds 20
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from filters.errors import run_command
from harness.drawing.figures import number
from harness.looking.decomposition import decompose
from harness.looking.jobs import Look, parse_seed, plan_jobs
from harness.sweeps.side_by_side import run_side_by_side
from leaderboard.runs.jsonfile import Json


@dataclass(frozen=True)
class Args(Look):
    """Train with a filter and take DTV's score of every trajectory apart, round by round.

    DTV_j = s_j + c_j with s_j = ‖g_j‖²/b and c_j = (1/b) Σ_{i≠j} ⟨g_i, g_j⟩; DTV keeps s_j + c_j ≥ 0, DTV-Loo c_j ≥ 0.
    Disputed are the trajectories that only their self-term keeps. Seeds that are finished stay; the same command goes
    on with the others.
    """

    task: str = "MiniGrid-Empty-8x8-dtv"
    """task to train on"""
    filter: str = "dtv-loo"
    """what the updates use; none, dtv or any other"""
    rounds: str = "20"
    """rounds to take apart: 20 means the first twenty, 2,5,10 those"""
    seed: str = "0,"
    """seeds to look at: 0, or 0,1,2; a single number without a comma is one seed"""
    out: Path = Path("runs/figures/decompose")
    """folder of the findings"""


def main(argv: list[str] | None = None) -> int:
    """Take apart, write, and print what was found."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.decompose", description=__doc__)
    jobs = plan_jobs(args, seeds=parse_seed(args.seed), rounds=args.rounds, name="--rounds", counts=True)
    for finding in run_side_by_side(decompose, jobs, jobs=args.jobs):
        print(sentence(finding))
    print(f"numbers and figures: {jobs[0].folder.parent}")
    return 0


def sentence(finding: Json) -> str:
    """One line about a finding."""
    lines = finding["rounds"]
    means = {name: float(np.mean([line["kept"][name] for line in lines])) for name in ("dtv", "dtv-loo")}
    disputed = float(np.mean([line["disputed"] for line in lines]))
    units = sum(line["trajectories"] for line in lines)
    return (
        f"seed {finding['seed']}, {len(lines)} rounds, {units} trajectories: dtv keeps {number(means['dtv'])}, dtv-loo "
        f"{number(means['dtv-loo'])} of them; disputed {number(disputed)} (means of the rounds)"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
