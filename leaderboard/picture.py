"""What do an entry's learning curves look like? `python -m leaderboard.picture` draws the README's.

python -m leaderboard.picture
python -m leaderboard.picture leaderboard/submissions/KEY.json --out curves.png
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import run_command
from leaderboard.board.picture import draw
from leaderboard.entries.submission import read_entry

TITLES = {
    "MiniGrid-Empty-8x8/v3@envpool@eval-100-every-1": "MiniGrid-Empty-8x8, IIF paper's setting",
    "MiniGrid-Empty-8x8-dtv/v1@envpool@eval-100-every-1": "MiniGrid-Empty-8x8, DTV paper's setting",
}


@dataclass(frozen=True)
class Args:
    """Draw the learning curves of an accepted entry: mean, 95 % interval and every seed, a panel for each task."""

    entry: tyro.conf.Positional[Path] = Path("leaderboard/submissions/claims-settings.json")
    """the submission"""
    out: Path = Path("docs/learning-curves.svg")
    """the picture, .svg or .png"""


def main(argv: list[str] | None = None) -> None:
    """Read and draw."""
    args = tyro.cli(Args, args=argv, prog="python -m leaderboard.picture", description=__doc__)
    draw(read_entry(args.entry), args.out, titles=TITLES)
    print(f"wrote {args.out}")


if __name__ == "__main__":
    sys.exit(run_command(main))
