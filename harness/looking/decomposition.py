"""What are DTV's scores made of? Self- and cross-terms, and the trajectories that the variants dispute.

The work of `python -m harness.decompose`.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from filters.api import Rollout
from filters.dtv import DTV, DTVLoo, terms
from filters.gradients.influence import align_units
from harness.drawing.decomposition import draw_rounds, draw_units
from harness.looking.findings import write_finding
from harness.looking.jobs import Job
from harness.rounds.training import Moment
from harness.sweeps.side_by_side import Report
from leaderboard.runs.jsonfile import Json


def decompose(job: Job, report: Report) -> Json:
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


def share(flags: Tensor) -> float:
    """Share of True."""
    return float(flags.float().mean())


def by_record(keep: Tensor, rollout: Rollout) -> float:
    """Share of the records whose trajectory stays."""
    return share(keep[rollout.trajectory])


def spread(values: Tensor) -> Json | None:
    """Mean, median and quartiles; None of nothing."""
    if not len(values):
        return None
    numbers: NDArray[np.float64] = values.double().cpu().numpy()
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    return {"mean": float(numbers.mean()), "low": float(low), "median": float(middle), "high": float(high)}


def finite(values: Tensor) -> list[float | None]:
    """A list that JSON can hold."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
