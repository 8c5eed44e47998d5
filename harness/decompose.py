"""What are DTV's scores made of? Self- and cross-terms over training, and the trajectories that the variants dispute.

python -m harness.decompose --task MiniGrid-Empty-8x8-dtv --filter dtv-loo --rounds 20
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from filters.api import Rollout
from filters.dtv import DTV, DTVLoo, terms
from filters.errors import run_command
from filters.gradients.influence import align_units
from harness.drawing.decomposition import draw_rounds, draw_units
from harness.drawing.figures import number
from harness.looking.findings import write_finding
from harness.looking.frame import Job, Look, plan_jobs
from harness.looking.rounds import Moment
from harness.run import parse_seeds
from harness.sweeps.side_by_side import Report, run_side_by_side
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
    jobs = plan(args)
    for finding in run_side_by_side(decompose, jobs, jobs=args.jobs):
        print(sentence(finding))
    print(f"numbers and figures: {jobs[0].folder.parent}")
    return 0


def plan(args: Args) -> list[Job[Args]]:
    """One job a seed; raises UsageError for anything that can't be."""
    seeds = parse_seeds(args.seed if "," in args.seed else args.seed + ",")
    return plan_jobs(Job[Args], args, seeds=seeds, rounds=args.rounds, name="--rounds", counts=True)


def decompose(job: Job[Args], report: Report) -> Json:
    """Take the rounds of one seed apart; returns the finding."""
    settings = job.settings()  # of the code and the files as they are now, not after the work
    old = job.read_finding("terms.json", settings, report)
    if old is not None:
        return old
    training = job.open_training()
    lines = []
    for moment in job.collect_rounds(training, report):
        if moment.number in job.rounds:
            lines.append(take_apart(moment))
        training.update(moment)
    training.close()
    finding: Json = job.head | {"rounds": lines, "settings": settings}
    draw_rounds(finding, job.folder / "rounds.png")
    draw_units(finding, job.folder / "trajectories.png")
    write_finding(job.folder / "terms.json", finding)
    return finding


def take_apart(moment: Moment) -> Json:
    """The terms [U] of every trajectory of a round, and what DTV and DTV-Loo make of them."""
    rollout = moment.rollout
    alignment = align_units(moment.objective.per_record, moment.objective.params, rollout.trajectory)
    self_term, cross_term = terms(alignment)
    b = alignment.b
    dtv = alignment.finite & (DTV().combine(self_term, cross_term, b) >= 0)
    loo = alignment.finite & (DTVLoo().combine(self_term, cross_term, b) >= 0)
    length = rollout.trajectory.bincount()
    total = rollout.rewards.new_zeros(len(length)).index_add_(0, rollout.trajectory, rollout.rewards)
    disputed = dtv != loo
    return {
        "round": moment.number,
        "train_return": moment.train_return,
        "trajectories": rollout.num_trajectories,
        "unscorable": int((~alignment.finite).sum()),
        "kept": {
            "dtv": share(dtv),
            "dtv-loo": share(loo),
            "training filter": float(moment.selection.keep.float().mean()),
        },
        "kept_records": {"dtv": by_record(dtv, rollout), "dtv-loo": by_record(loo, rollout)},
        "disputed": share(disputed),
        "self": spread(self_term[alignment.finite]),
        "cross": spread(cross_term[alignment.finite]),
        "units": {
            "self": finite(self_term),
            "cross": finite(cross_term),
            "length": length.tolist(),
            "reward": total.tolist(),
            "disputed": disputed.nonzero().flatten().tolist(),
        },
    }


def share(flags: torch.Tensor) -> float:
    """Share of True."""
    return float(flags.float().mean())


def by_record(keep: torch.Tensor, rollout: Rollout) -> float:
    """Share of the records whose trajectory stays."""
    return share(keep[rollout.trajectory])


def spread(values: torch.Tensor) -> Json | None:
    """Mean, median and quartiles; None of nothing."""
    if not len(values):
        return None
    numbers: NDArray[np.float64] = values.double().cpu().numpy()
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    return {"mean": float(numbers.mean()), "low": float(low), "median": float(middle), "high": float(high)}


def finite(values: torch.Tensor) -> list[float | None]:
    """A list that JSON can hold."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


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
