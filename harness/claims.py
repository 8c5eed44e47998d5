"""Which runs answer the papers' claims? Every part of them in a fixed order, with its filters and seeds.

python -m harness.claims
python -m harness.claims --part settings iif --jobs 1

Parts share runs: what is complete is skipped, and an interrupted sweep goes on with the same command. The numbers of
seeds were fixed before the first run.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from filters.registry import suggest
from harness import run


@dataclass(frozen=True)
class Part:
    """Filters on the tasks of one suite."""

    suite: str
    filters: tuple[str, ...]
    seeds: int


PARTS: dict[str, Part] = {
    "settings": Part("claims-settings", ("iif", "dtv-loo"), 10),
    "iif": Part("claims-iif", ("iif", "random", "random-matched", "td-error", "reward", "dtv-loo"), 5),
    "adam": Part("claims-adam", ("iif", "random"), 5),
    "share": Part(
        "claims-share",
        (
            *(f"iif:fraction={share}" for share in (0.0625, 0.125, 0.25, 0.5, 1)),
            *("advantage-error:heuristic=1", "advantage-error:heuristic=2"),
        ),
        5,
    ),
    "dtv": Part("claims-dtv", ("iif", "dtv", "dtv-loo", "dtv-lambda", "random", "reward"), 10),
    "walk": Part("claims-walk", ("iif",), 5),
    "restart": Part("claims-restart", ("iif",), 5),
    "doorkey": Part("claims-doorkey", ("iif", "dtv", "dtv-loo"), 35),
    "protocol": Part("claims-protocol", ("iif",), 5),
    "walker": Part("claims-walker", ("iif", "random"), 5),
}
"""the parts in the order in which they run"""


@dataclass(frozen=True)
class Args:
    """Make the runs behind the page of claims, part by part; a folder's complete runs are skipped."""

    part: tuple[str, ...] = ()
    """parts to run instead of all"""
    out: Path = Path("runs/claims")
    """folder of the run directories"""
    jobs: int = 0
    """cells side by side, on one thread each; 0 means one a core, as far as memory allows"""
    quiet: bool = False
    """no progress bar, only a line for every cell that ends"""
    dry_run: bool = False
    """say what would run and how long it may take, and stop"""


def main() -> int:
    """Run the parts one after the other; returns the largest of their exit codes."""
    args = tyro.cli(Args, prog="python -m harness.claims", description=__doc__)
    for name in args.part:
        if name not in PARTS:
            raise UsageError(f"unknown part {name!r}; {suggest(name, list(PARTS))}")
    return max(run.main(command(PARTS[name], args)) for name in args.part or PARTS)


def command(part: Part, args: Args) -> list[str]:
    """The arguments of `python -m harness.run` that make the part's runs."""
    flags = [flag for flag, on in (("--quiet", args.quiet), ("--dry-run", args.dry_run)) if on]
    where = ["--out", str(args.out), "--jobs", str(args.jobs), "--device", "cpu"]
    return ["--suite", part.suite, "--filter", *part.filters, "--seeds", str(part.seeds), *where, *flags]


if __name__ == "__main__":
    sys.exit(run_command(main))
