"""Do all imports point the right way, and does docs/architecture.svg show them as they are?

python -m harness.checks.architecture            say what is wrong
python -m harness.checks.architecture --write    draw the picture anew as well
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import run_command
from harness.checks.architecture_svg import picture
from harness.checks.imports import faults

ROOT = Path(__file__).parents[2]
PICTURE = Path("docs/architecture.svg")


@dataclass(frozen=True)
class Args:
    """Check the directions of all imports and the picture that shows them."""

    write: bool = False
    """draw docs/architecture.svg anew"""


def main(argv: list[str] | None = None) -> int:
    """Print what is wrong, draw if asked; exit code 1 if something is."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.checks.architecture", description=__doc__)
    if args.write:
        (ROOT / PICTURE).write_text(picture(ROOT), encoding="utf-8")
    found = [*faults(ROOT), *stale(ROOT)]
    print(*(found or ["no circle, no forbidden arrow, and the picture is today's"]), sep="\n")
    return int(bool(found))


def stale(root: Path) -> list[str]:
    """A sentence if the picture does not show today's graph, else nothing."""
    file = root / PICTURE
    if file.exists() and file.read_text(encoding="utf-8") == picture(root):
        return []
    return [f"{PICTURE.as_posix()} does not show today's imports: run python -m harness.checks.architecture --write"]


if __name__ == "__main__":
    sys.exit(run_command(main))
