"""Is every run what its folder says? Finds damaged, edited, mixed-up and stale cells.

python -m harness.verify runs/
python -m harness.verify runs/ --trust my_pkg.my_mod:MyFilter
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import run_command
from harness.checks.verification import verify


@dataclass(frozen=True)
class Args:
    """Check every cell below a folder: exit code 1 if one is not what its folder says."""

    runs: tyro.conf.Positional[Path]
    """the folder that the runs were written to"""
    trust: tuple[str, ...] = ()
    """import paths of filters (my_pkg.my_mod:MyFilter) that may be imported to compare their settings and sources;
    a run directory can name any module, so none is imported unless it is named here"""
    strict: bool = False
    """exit code 1 also for notes: runs of other code or other package versions"""


def main(argv: list[str] | None = None) -> int:
    """Print a line for each bad cell, then how many cells there are; exit code 1 if there is a bad one."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.verify", description=__doc__)
    found = verify(args.runs, trust=args.trust)
    for problem in found.problems:
        print(f"bad: {problem}")
    for note in found.notes:
        print(f"note: {note}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(found.states.items()))
    print(f"{sum(found.states.values())} cells ({counts}): {len(found.problems)} bad, {len(found.notes)} notes")
    return int(bool(found.problems or (args.strict and found.notes)))


if __name__ == "__main__":
    sys.exit(run_command(main))
