"""How many seeds per task does a claim need? `python -m leaderboard.power --effect 0.5 --tasks 6 --filters 8` says.

The claim: the joint sign-flip test with Holm's correction over F filters finds a filter whose paired differences have
the standardised mean d_z, two-sided at a family-wise 5 %.

The model: m = seeds · tasks differences (one a pair of runs with the same task and seed), independent and normal with
mean d_z and standard deviation 1. Every task shows the same effect; where only some tasks do, d_z over all pairs is
smaller. Holm asks the smallest of F p values to be at most 5 % / F and the others for less, so 5 % / F is the worst
case: the other filters' outcomes and their correlation through the shared baseline can only raise the power.

The computation: up to 60 pairs the sign-flip test itself on 3,000 seeded samples (the standard error of a predicted
power is at most 0.9 points); beyond, the noncentral F of the paired t test, which agrees with it there within about
a point. With few pairs even the smallest p that the sign-flip test can give is above 5 % / F; the power is then 0.
"""

import sys
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache

import numpy as np
import tyro
from rich.console import Console

from filters.errors import UsageError, run_command
from leaderboard.report import WIDTH, draw
from leaderboard.statistics.significance import ALPHA, DRAWS, POWER, paired_power, sign_flips, smallest_p
from leaderboard.statistics.tables import Sheet, format_p

SAMPLES = 3_000
SIMULATED = 60
"""pairs up to which the test is simulated"""
MOST_SEEDS = 100_000
ROWS = (3, 5, 10)
"""seeds that are shown beside the answer"""

COLUMNS = ("Seeds\nper task", "Pairs", "Predicted\npower %", "Smallest\np")


@dataclass(frozen=True, kw_only=True)
class Args:
    """How many seeds per task does a claim need, so that the joint sign-flip test with Holm's correction finds it?"""

    effect: float
    """d_z, the mean of the paired differences divided by their standard deviation, over all (task, seed) pairs"""
    tasks: int
    """tasks of the suite"""
    filters: int
    """filters that are compared with the baseline in one family"""
    seeds: tuple[int, ...] = ROWS
    """seeds per task to show the power of, beside the number that is needed"""
    rate: float = POWER
    """the power that is wanted: how often the test should find the effect"""


@cache
def joint_power(effect: float, pairs: int, *, filters: int, seed: int = 0) -> float:
    """How often the joint sign-flip test finds d_z = `effect` if Holm asks for p <= 5 % / filters.

    Args:
        effect: d_z, without a unit.
        pairs: seeds · tasks.
        filters: compared in one family.
        seed: of the simulated samples.
    """
    if filters * smallest_p(pairs) > ALPHA:
        return 0.0
    level = ALPHA / filters
    if pairs > SIMULATED:
        return paired_power(effect, pairs, level=level)
    # the test draws more; here p only has to be resolved where it decides, at about the 50th pattern
    draws = DRAWS if 2**pairs <= DRAWS else min(DRAWS, round(50 / level) - 1)
    samples = np.random.default_rng(seed).normal(effect, 1.0, (SAMPLES, pairs))
    return float(np.mean(filters * sign_flips(samples, draws=draws) <= ALPHA))


def needed_seeds(effect: float, *, tasks: int, filters: int, rate: float = POWER) -> int:
    """The smallest number of seeds per task whose `joint_power` is at least `rate`.

    Raises:
        UsageError: if a number makes no sense, or no number of seeds is enough.
    """
    _check(effect, tasks, filters, rate)
    if filters * smallest_p(DRAWS) > ALPHA:
        raise UsageError(
            f"{filters} filters need p <= {ALPHA / filters:.1e}, but the test's {DRAWS:,} draws give no p below "
            f"{smallest_p(DRAWS):.1e}; compare at most {int(ALPHA / smallest_p(DRAWS)):,} filters at once"
        )

    def enough(seeds: int) -> bool:
        """By the paired t test, which is quick and close."""
        pairs = seeds * tasks
        possible = filters * smallest_p(pairs) <= ALPHA
        return possible and paired_power(effect, pairs, level=ALPHA / filters) >= rate

    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_SEEDS:
            raise UsageError(f"d_z = {effect:g} needs more than {MOST_SEEDS:,} seeds per task; give a larger --effect")
    seeds = bisect_left(range(1, high + 1), True, key=enough) + 1
    while joint_power(effect, seeds * tasks, filters=filters) < rate:
        seeds += 1
    while seeds > 1 and joint_power(effect, (seeds - 1) * tasks, filters=filters) >= rate:
        seeds -= 1
    return seeds


def _check(effect: float, tasks: int, filters: int, rate: float) -> None:
    if not (np.isfinite(effect) and effect > 0):
        raise UsageError(f"--effect {effect:g} is no finite number above 0; give d_z, 0.5 for example")
    for name, count in (("--tasks", tasks), ("--filters", filters)):
        if count < 1:
            raise UsageError(f"{name} {count} is below 1; give how many there are")
    if not 0 < rate < 1:
        raise UsageError(
            f"--rate {rate:g} does not lie between 0 and 1; give the power that is wanted, 0.8 for example"
        )


def _row(args: Args, seeds: int) -> tuple[str, ...]:
    pairs = seeds * args.tasks
    power = joint_power(args.effect, pairs, filters=args.filters)
    return (f"{seeds:,}", f"{pairs:,}", f"{100 * power:.1f}", format_p(smallest_p(pairs)))


def main() -> int:
    """The command; returns the exit code."""
    args = tyro.cli(Args, prog="python -m leaderboard.power")
    for seeds in args.seeds:
        if not 1 <= seeds <= MOST_SEEDS:
            raise UsageError(f"--seeds {seeds} does not lie between 1 and {MOST_SEEDS:,}; give seeds per task")
    needed = needed_seeds(args.effect, tasks=args.tasks, filters=args.filters, rate=args.rate)
    rows = tuple(_row(args, seeds) for seeds in sorted({*args.seeds, needed}))
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    console.print(
        f"Joint sign-flip test of an effect of d_z = {args.effect:g} on every task (tasks: {args.tasks}, filters: "
        f"{args.filters}). In Holm's worst case it is found if p ≤ {ALPHA:g} / {args.filters} = "
        f"{ALPHA / args.filters:.3g}."
    )
    console.print(draw(Sheet("", COLUMNS, rows), console.width))
    console.print(f"Seeds per task needed to find it at a rate of {args.rate:g}: {needed:,}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main))
