"""What does one intervention do? A round's update with the filter, without it, and with a random drop of that size.

The work of `python -m harness.intervene`.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from algos.envs.evaluate import Evaluator, make_evaluator
from filters.api import Params
from filters.errors import UsageError
from filters.iif import IIF, fixed_target
from harness.drawing.intervention import draw_boxes, draw_rounds
from harness.looking.findings import write_finding
from harness.looking.jobs import Job, Look, plan_jobs
from harness.rounds.ranking import mean_interval
from harness.rounds.training import Moment, Training
from harness.sweeps.side_by_side import Report
from leaderboard.runs.jsonfile import Json

ARMS = ("ordinary", "filtered", "random")
OUTCOMES = ("f_return", "test_return")
COMPARISONS = (("filtered", "ordinary"), ("random", "ordinary"), ("filtered", "random"))


def plan(args: Look, *, seeds: tuple[int, ...], rounds: str) -> list[Job]:
    """One job a seed; raises UsageError for anything that can't be."""
    jobs = plan_jobs(args, seeds=seeds, rounds=rounds, name="--rounds", counts=True)
    warmup = getattr(jobs[0].make_filter(), "warmup", 0)
    if jobs[0].rounds[0] <= warmup:
        raise UsageError(
            f"--rounds: the filter {args.filter} drops nothing in its first {warmup} rounds; "
            "choose later rounds or set warmup=0"
        )
    return jobs


def intervene(job: Job, report: Report, *, episodes: int) -> Json:
    """All interventions of one seed; returns the finding.

    Args:
        job: the seed.
        report: told how far it is.
        episodes: test episodes of each arm; 0: the task's own number.
    """
    settings = job.settings()  # of the code and the files as they are now, not after the work
    old = job.read_finding("interventions.json", settings, report)
    if old is not None:
        return old
    training = job.open_training()
    test = TestEpisodes(training, episodes or training.args.eval_episodes, job.seed)
    lines = []
    for moment in job.collect_rounds(training, report):
        if moment.number in job.rounds:
            lines.append(compare_updates(job.seed, training, moment, test))
        training.update_on_all(moment)
    test.close()
    training.close()
    finding: Json = job.head | {"episodes": test.count, "rounds": lines, "settings": settings}
    write_finding(job.folder / "interventions.json", finding)
    return finding


def compare_updates(seed: int, training: Training, moment: Moment, test: "TestEpisodes") -> Json:
    """One round's three updates from the same parameters: the changes of f_return and test return of each."""
    target = target_of(training, moment)
    before = {"f_return": f_return(target, training, moment), "test_return": test.play()}
    keep = moment.selection.keep
    kept = {
        "ordinary": torch.ones_like(keep),
        "filtered": keep,
        "random": keep_as_many(keep, seed=seed, round=moment.number),
    }
    line: Json = {"round": moment.number, "dropped": int((~keep).sum()), "before": before}
    for arm in ARMS:
        with training.counterfactual_update(moment, kept[arm]) as steps:
            after = {"f_return": f_return(target, training, moment), "test_return": test.play()}
        line[arm] = {name: after[name] - before[name] for name in OUTCOMES} | {"optimizer_steps": steps}
    return line


def keep_as_many(keep: Tensor, *, seed: int, round: int) -> Tensor:
    """A random mask [n] that drops as many records as `keep` [n] does."""
    words = np.random.SeedSequence([seed, round]).generate_state(1, np.uint64)
    rng = torch.Generator(keep.device).manual_seed(int(words[0] >> 1))
    dropped = torch.randperm(keep.shape[0], generator=rng, device=keep.device)[: int((~keep).sum())]
    mask = torch.ones_like(keep)
    mask[dropped] = False
    return mask


def target_of(training: Training, moment: Moment) -> Callable[[Params], Tensor]:
    """−f_return as a function of the parameters: of the filter's fixed reference, or else of the round's records."""
    filter = training.filter
    if isinstance(filter, IIF) and filter.reference is not None:
        return fixed_target(filter.reference, moment.rollout, moment.objective)
    return moment.objective.target


def f_return(target: Callable[[Params], Tensor], training: Training, moment: Moment) -> float:
    """f_return of the agent as it is now."""
    with torch.no_grad():
        return -float(target(training.params(moment.objective.params)))


class TestEpisodes:
    """Episodes of fixed seeds and fixed draws, so that two policies meet the same luck."""

    __test__ = False  # no test class of pytest's

    def __init__(self, training: Training, count: int, seed: int) -> None:
        args = training.args
        self.training, self.count = training, count
        self.evaluator: Evaluator = make_evaluator(args.env_id, args.env_kwargs, args.env_backend, count)
        words = np.random.SeedSequence([seed, count]).generate_state(count + 1) >> 1
        self.seeds, self.draws = words[1:].tolist(), int(words[0])

    def play(self) -> float:
        """Mean return of the agent as it is now."""
        rng = torch.Generator(self.training.args.device).manual_seed(self.draws)
        return float(self.evaluator.play(self.training.act(rng), self.seeds)[0].mean())

    def close(self) -> None:
        """Close the environments."""
        self.evaluator.close()


def write_summary(findings: list[Json], folder: Path) -> Json:
    """What all seeds come to, written and drawn."""
    summary = summarise(findings)
    write_finding(folder / "summary.json", summary)
    draw_boxes(summary, folder / "boxes.png")
    draw_rounds(summary, folder / "rounds.png")
    return summary


def summarise(findings: list[Json]) -> Json:
    """Paired differences of the arms with 95 % t intervals, over interventions and over the means of seeds."""
    lines = [line | {"seed": finding["seed"]} for finding in findings for line in finding["rounds"]]
    paired: Json = {}
    for name in OUTCOMES:
        for arm, other in COMPARISONS:
            by_seed = {
                finding["seed"]: [line[arm][name] - line[other][name] for line in finding["rounds"]]
                for finding in findings
            }
            differences = [value for values in by_seed.values() for value in values]
            paired[f"{name}: {arm} - {other}"] = {
                "interventions": mean_interval(differences),
                "seeds": mean_interval([float(np.mean(values)) for values in by_seed.values()]),
                "share_above_0": float(np.mean(np.array(differences) > 0)),
                "share_below_0": float(np.mean(np.array(differences) < 0)),
            }
    change = {arm: {name: mean_interval([line[arm][name] for line in lines]) for name in OUTCOMES} for arm in ARMS}
    head = {name: findings[0][name] for name in ("task", "filter", "episodes")}
    return head | {
        "seeds": [finding["seed"] for finding in findings],
        "rounds": sorted({line["round"] for line in lines}),
        "change": change,
        "paired": paired,
        "interventions": lines,
    }
