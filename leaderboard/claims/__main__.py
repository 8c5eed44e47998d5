"""What do our runs say of the papers' claims? `python -m leaderboard.claims` makes docs/claims.md.

The same page of the site is made by `python -m leaderboard.build`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from leaderboard.claims.answers import read_claims
from leaderboard.claims.markdown import claims_markdown
from leaderboard.claims.page import make_page
from leaderboard.claims.walk import draw
from leaderboard.claims.words import at_a_glance


@dataclass(frozen=True)
class Args:
    """Make docs/claims.md and its picture from the accepted entries claims-*.json."""

    submissions: Path = Path("leaderboard/submissions")
    """the folder that holds them"""
    markdown: Path = Path("docs/claims.md")
    """the page"""
    picture: Path = Path("docs/claims-walk.svg")
    """the picture of the walk between the settings, .svg or .png, next to the page; drawn if there are runs of it"""


def main(argv: list[str] | None = None) -> None:
    """Read, judge, write."""
    args = tyro.cli(Args, args=argv, prog="python -m leaderboard.claims", description=__doc__)
    page = make_page(read_claims(args.submissions))
    if page.stops:
        draw(page.stops, args.picture)
    try:
        args.markdown.write_text(claims_markdown(page, picture=args.picture.name), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"can't write {args.markdown} ({error}); choose another --markdown") from error
    written = f"{args.markdown} and {args.picture}" if page.stops else f"{args.markdown}"
    print(f"wrote {written}: {at_a_glance(page.counts)}")


if __name__ == "__main__":
    sys.exit(run_command(main))
