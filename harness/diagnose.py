"""Which records does a filter think helpful or harmful, and is it right? A look into single rounds.

python -m harness.diagnose --task FrozenLake --filter iif --seed 0 --round 5
python -m harness.diagnose --task FrozenLake --filter iif --seed 0,1,2,3,4 --round 2,5,10
python -m harness.diagnose --task FrozenLake --target action --observation 14 --action 2 --round 10
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import tyro

from algos.envs.single import make_env
from filters.api import Filter
from filters.errors import UsageError, run_command
from filters.registry import make, parse
from harness.drawing.diagnosis import draw_summary
from harness.drawing.figures import number
from harness.drawing.pictures import render_options
from harness.looking import diagnosis, temporal
from harness.looking import frame as looking
from harness.looking.findings import write_finding
from harness.looking.ranking import FIFTHS, mean_interval
from harness.looking.snapshots import require_copy
from harness.run import parse_seeds
from harness.sweeps.side_by_side import Report, run_side_by_side
from harness.tasks.catalogue import Task, find_task
from leaderboard.runs.jsonfile import Json


@dataclass(frozen=True)
class Args(looking.Look):
    """Train to a round, rank its records by a filter's scores, and hold the ranking against Monte-Carlo advantages.

    With `--target action` instead: what made one action in one state likely, from the first round to the last. Numbers
    go to JSON files, figures beside them. Seeds that are finished stay; the same command goes on with the others.
    """

    task: str = "FrozenLake"
    """task to look into"""
    filter: str = "iif"
    """whose scores rank the records"""
    trained_by: str = ""
    """filter of the updates before; that of --filter if left out"""
    seed: str = "0,"
    """seeds to look at: 0, or 0,1,2; a single number without a comma is one seed"""
    round: str = "5"
    """rounds to look at, from 1 on: 5 or 2,5,10; with --target action the last is where the analysis ends"""
    target: Literal["return", "action"] = "return"
    """what influence is measured on: the filter's own target, or log π of one action in one state"""
    observation: str = ""
    """target action: the state, as numbers (0.1,0.2,…), the number of a discrete state, or a .npy or .json file"""
    pick: int = -1
    """target action: take state and action of this record of the first round's rollout"""
    action: int = -1
    """target action: the action"""
    advantages: Literal["auto", "futures", "repeats"] = "auto"
    """Monte-Carlo advantages from played futures or from states that repeat; auto: futures where that can be done"""
    records: int = 100
    """records along the ranking to value; all, where they have no more different states than that"""
    futures: int = 0
    """played futures of each value; 0: as many as --budget allows"""
    budget: int = 400_000
    """environment steps of futures a round"""
    show: int = 5
    """different records to show from the top and from the bottom"""
    out: Path = Path("runs/figures/diagnose")
    """folder of the findings"""

    def __post_init__(self) -> None:
        for name in ("records", "budget", "show"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} must be at least 1, got {getattr(self, name)}")
        if self.futures < 0 or self.futures == 1:
            raise UsageError(f"--futures must be 0 (as many as --budget allows) or at least 2, got {self.futures}")


class Job(looking.Job[Args]):
    """One seed of the command."""

    @property
    def spec(self) -> str:
        """The filter that scores, and behind an @ the one that trained if it is another."""
        by = str(parse(self.args.trained_by)) if self.args.trained_by else ""
        spec = str(parse(self.args.filter))
        return f"{spec}@{by}" if by not in ("", spec) else spec

    def make_trainer(self) -> Filter:
        """The filter of the updates."""
        return make(self.args.trained_by or self.args.filter, self.task.filter_defaults)

    @property
    def task(self) -> Task:
        """The task, its environments drawing what is to be shown."""
        task = find_task(self.args.task)
        kwargs = task.args.env_kwargs | render_options(task.args.env_id)
        return replace(task, args=replace(task.args, env_kwargs=kwargs))


def main(argv: list[str] | None = None) -> int:
    """Look, write, and print what was found."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.diagnose", description=__doc__)
    jobs = plan(args)
    work: Callable[[Job, Report], list[Json]] = diagnosis.look
    if args.target == "action":
        work = temporal.look
    findings = run_side_by_side(work, jobs, jobs=args.jobs)
    if args.target == "action":
        print(*(temporal.sentence(finding) for found in findings for finding in found), sep="\n")
    else:
        conclude([finding for found in findings for finding in found], jobs[0].folder.parent)
    print(f"numbers and figures: {jobs[0].folder.parent}")
    return 0


def plan(args: Args) -> list[Job]:
    """One job a seed; raises UsageError for anything that can't be."""
    seeds = parse_seeds(args.seed if "," in args.seed else args.seed + ",")
    jobs = looking.plan_jobs(Job, args, seeds=seeds, rounds=args.round, name="--round", counts=False)
    check_filter(jobs[0].make_filter(), args, jobs[0].rounds)
    task = jobs[0].task
    env = make_env(task.args.env_id, task.args.env_kwargs)
    if args.advantages == "futures":
        require_copy(env, task.id)
    if args.target == "action":
        temporal.check(args, env)
    env.close()
    return jobs


def check_filter(filter: Filter, args: Args, rounds: tuple[int, ...]) -> None:
    """Raise UsageError for a filter that passes one of the rounds unfiltered."""
    warmup = getattr(filter, "warmup", 0)
    if args.target == "return" and rounds[0] <= warmup:
        raise UsageError(
            f"--round {rounds[0]}: the filter {args.filter} scores nothing in its first {warmup} rounds; "
            f"choose a later round or set warmup=0"
        )


def conclude(findings: list[Json], folder: Path) -> None:
    """Print every round's numbers, and where there are several seeds write and draw their means."""
    for finding in findings:
        print(sentence(finding))
    valued = [finding for finding in findings if finding["summary"]]
    if len({finding["seed"] for finding in valued}) < 2:
        return
    summary = summarise(valued)
    write_finding(folder / "summary.json", summary)
    draw_summary(summary, folder / "summary.png")
    for k, found in summary["rounds"].items():
        gap = found["bottom_minus_top"]
        print(f"round {k}, {gap['n']} seeds: mismatches bottom − top {interval(gap)}, ρ {interval(found['spearman'])}")


def summarise(findings: list[Json]) -> Json:
    """Means over seeds with 95 % t intervals, round by round."""
    rounds: Json = {}
    for k in sorted({finding["round"] for finding in findings}):
        found = [finding["summary"] for finding in findings if finding["round"] == k]
        rounds[str(k)] = {
            "mismatch": {name: mean_interval([one["mismatch"][name] for one in found]) for name in FIFTHS},
            "mismatch_clear": {name: means(one["mismatch_clear"][name] for one in found) for name in FIFTHS},
            "bottom_minus_top": mean_interval([one["mismatch"]["bottom"] - one["mismatch"]["top"] for one in found]),
            "bottom_minus_middle": mean_interval(
                [one["mismatch"]["bottom"] - one["mismatch"]["middle"] for one in found]
            ),
            "spearman": means(one["spearman_product"] for one in found),
            "spearman_gap": means(one["spearman_gap"] for one in found),
        }
    head = {name: findings[0][name] for name in ("task", "filter")}
    return head | {"seeds": sorted({finding["seed"] for finding in findings}), "rounds": rounds}


def means(values: Any) -> Json:
    """Mean and interval of the values that exist."""
    return mean_interval([value for value in values if value is not None])


def interval(found: Json) -> str:
    """A mean with its interval, for a sentence."""
    if found["ci"] is None:
        return number(found["mean"])
    return f"{number(found['mean'])} [{number(found['ci'][0])}, {number(found['ci'][1])}]"


def sentence(finding: Json) -> str:
    """One line about a round."""
    head = f"seed {finding['seed']}, round {finding['round']}: "
    summary = finding["summary"]
    if summary is None:
        return f"{head}no Monte-Carlo advantages ({finding['advantages']['how']})"
    shares = ", ".join(f"{name} {number(summary['mismatch'][name])}" for name in FIFTHS)
    if finding["advantages"]["futures"]:
        clear = (f"{number(summary['mismatch_clear'][name])} of {summary['clear'][name]}" for name in FIFTHS)
        shares += f" (where Ā has a clear sign {', '.join(clear)})"
    return (
        f"{head}sign mismatches {shares}; Spearman of rank and Ā·Â {number(summary['spearman_product'])} "
        f"({summary['records']} records, {finding['advantages']['how']})"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
