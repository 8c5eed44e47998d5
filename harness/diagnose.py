"""Which records does a filter think helpful or harmful, and is it right? A look into single rounds.

python -m harness.diagnose --task FrozenLake --filter iif --seed 0 --round 5
python -m harness.diagnose --task FrozenLake --filter iif --seed 0,1,2,3,4 --round 2,5,10
python -m harness.diagnose --task FrozenLake --target action --observation 14 --action 2 --round 10
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import tyro

from filters.errors import UsageError, run_command
from harness.drawing.figures import interval, number
from harness.looking import diagnosis, pairs, temporal
from harness.looking.diagnosis import Valuation, Way
from harness.looking.jobs import Job, Look, parse_seed
from harness.looking.pairs import Pair
from harness.rounds.ranking import FIFTHS
from harness.sweeps.side_by_side import run_side_by_side
from leaderboard.runs.jsonfile import Json


@dataclass(frozen=True)
class Args(Look):
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
    advantages: Way = "auto"
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


def main(argv: list[str] | None = None) -> int:
    """Look, write, and print what was found."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.diagnose", description=__doc__)
    jobs = diagnosis.plan(
        args,
        seeds=parse_seed(args.seed),
        rounds=args.round,
        trained_by=args.trained_by,
        way=args.advantages,
        ranks=args.target == "return",
    )
    if args.target == "action":
        follow_action(args, jobs)
    else:
        rank_records(args, jobs)
    print(f"numbers and figures: {jobs[0].folder.parent}")
    return 0


def follow_action(args: Args, jobs: list[Job]) -> None:
    """What made an action likely: a line for each seed."""
    pair = Pair(args.observation, args.pick, args.action)
    pairs.check(pair, jobs[0].task)
    work = partial(temporal.look, pair=pair, show=args.show)
    for finding in run_side_by_side(work, jobs, jobs=args.jobs):
        print(action_sentence(finding))


def rank_records(args: Args, jobs: list[Job]) -> None:
    """Whether the ranking is right: a line for each seed and round, and of several seeds a line for their means."""
    valuation = Valuation(args.advantages, args.records, args.futures, args.budget)
    work = partial(diagnosis.look, valuation=valuation, show=args.show)
    findings = [finding for found in run_side_by_side(work, jobs, jobs=args.jobs) for finding in found]
    print(*(round_sentence(finding) for finding in findings), sep="\n")
    summary = diagnosis.write_summary(findings, jobs[0].folder.parent)
    for k, found in summary["rounds"].items() if summary else ():
        gap = found["bottom_minus_top"]
        print(f"round {k}, {gap['n']} seeds: mismatches bottom − top {interval(gap)}, ρ {interval(found['spearman'])}")


def round_sentence(finding: Json) -> str:
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


def action_sentence(finding: Json) -> str:
    """One line about a seed."""
    first, last = finding["rounds"][0], finding["rounds"][-1]
    rough = [number(line["roughness"]["50"]) for line in (first, last)]
    return (
        f"seed {finding['seed']}, action {finding['action']}: π {number(first['probability'])} in round "
        f"{first['round']}, {number(last['probability'])} in round {last['round']}; "
        f"roughness (50 neighbours) {rough[0]} → {rough[1]}"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
