"""How do the claims become a page of the site?"""

import re
from collections.abc import Iterable
from typing import Any

from leaderboard.board.pages import environment
from leaderboard.claims import words
from leaderboard.claims.answers import by_suite
from leaderboard.claims.page import make_page
from leaderboard.entries.submission import Entry


def claims_page(entries: Iterable[Entry]) -> tuple[str, str]:
    """The page's place in the site, and its content; the same entries give the same bytes.

    Args:
        entries: all of the board; those of the claims are looked up.

    Raises:
        UsageError: if the extra `board` is not installed, or an entry's numbers can't be compared.
    """
    pages, page = environment(), make_page(by_suite(entries))
    pages.globals["rich"] = _rich
    content = pages.get_template("claims.html").render(
        words=words,
        counts=page.counts,
        topics=[(topic.title, [words.line_of(answer) for answer in topic.answers]) for topic in page.topics],
        measures=words.measures_used(page.topics),
        sections=page.sections,
    )
    return "claims.html", content


def _rich(text: str) -> Any:
    """Escaped, then `code` and **strong** as elements."""
    from markupsafe import Markup, escape

    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe))
