"""What does one intervention do? A round's update with the filter, without it, and with a random drop of that size.

python -m harness.intervene --task FrozenLake --filter iif:fraction=1 --rounds 8 --seeds 3
python -m harness.intervene --task FrozenLake --filter iif:reference=frozenlake.ref --rounds 2,10,20,30
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor

from algos.envs.evaluate import Evaluator, make_evaluator
from filters.errors import UsageError, run_command
from filters.iif import IIF, fixed_target
from harness.drawing.figures import number
from harness.drawing.intervention import draw_boxes, draw_rounds
from harness.looking.findings import write_finding
from harness.looking.frame import Job, Look, plan_jobs
from harness.looking.ranking import mean_interval
from harness.looking.rounds import Moment, Training
from harness.run import parse_seeds
from harness.sweeps.side_by_side import Report, run_side_by_side
from leaderboard.runs.jsonfile import Json

ARMS = ("ordinary", "filtered", "random")
OUTCOMES = ("f_return", "test_return")
COMPARISONS = (("filtered", "ordinary"), ("random", "ordinary"), ("filtered", "random"))


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
    jobs = plan(args)
    found = run_side_by_side(intervene, jobs, jobs=args.jobs)
    summary = summarise(found)
    folder = jobs[0].folder.parent
    write_finding(folder / "summary.json", summary)
    draw_boxes(summary, folder / "boxes.png")
    draw_rounds(summary, folder / "rounds.png")
    print(*sentences(summary), sep="\n")
    print(f"numbers and figures: {folder}")
    return 0


def plan(args: Args) -> list[Job[Args]]:
    """One job a seed; raises UsageError for anything that can't be."""
    jobs = plan_jobs(Job[Args], args, seeds=parse_seeds(args.seeds), rounds=args.rounds, name="--rounds", counts=True)
    warmup = getattr(jobs[0].make_filter(), "warmup", 0)
    if jobs[0].rounds[0] <= warmup:
        raise UsageError(
            f"--rounds: the filter {args.filter} drops nothing in its first {warmup} rounds; "
            "choose later rounds or set warmup=0"
        )
    return jobs


def intervene(job: Job[Args], report: Report) -> Json:
    """All interventions of one seed; returns the finding."""
    settings = job.settings()  # of the code and the files as they are now, not after the work
    old = job.read_finding("interventions.json", settings, report)
    if old is not None:
        return old
    training = job.open_training()
    test = TestEpisodes(training, job.args.episodes or training.args.eval_episodes, job.seed)
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


def target_of(training: Training, moment: Moment) -> Any:
    """−f_return as a function of the parameters: of the filter's fixed reference, or else of the round's records."""
    filter = training.filter
    if isinstance(filter, IIF) and filter.reference is not None:
        return fixed_target(filter.reference, moment.rollout, moment.objective)
    return moment.objective.target


def f_return(target: Any, training: Training, moment: Moment) -> float:
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


def sentences(summary: Json) -> list[str]:
    """What came of it, a line a comparison."""
    said = []
    for name, found in summary["paired"].items():
        over = found["interventions"]
        said.append(f"Δ {name}: {interval(over)} over {over['n']} interventions, {interval(found['seeds'])} over seeds")
    return said


def interval(found: Json) -> str:
    """A mean with its interval."""
    if found["ci"] is None:
        return number(found["mean"])
    return f"{number(found['mean'])} [{number(found['ci'][0])}, {number(found['ci'][1])}]"


if __name__ == "__main__":
    sys.exit(run_command(main))
