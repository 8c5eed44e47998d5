"""What does docs/claims.md say?"""

import re
import textwrap
from collections.abc import Sequence

from leaderboard.board.text import markdown
from leaderboard.claims import words
from leaderboard.claims.answers import AnsweredTopic
from leaderboard.claims.page import Page
from leaderboard.claims.words import Line, Section, Table

WIDTH = 120


def claims_markdown(page: Page, *, picture: str) -> str:
    """The whole page; the same answers give the same bytes.

    Args:
        page: what it holds.
        picture: of the walk, as a link from the page; used where the page has one.
    """
    counts = page.counts
    parts = [
        f"# {words.TITLE}",
        *words.INTRODUCTION,
        f"**{words.at_a_glance(counts)}**",
        "## The rule",
        *words.RULE,
        _items(words.RULE_ITEMS),
        *words.RULE_NOTES,
        words.multiplicity(counts),
        "What is measured:",
        _items(words.measures_used(page.topics)),
        *(_topic(topic) for topic in page.topics),
        *(_section(section, picture) for section in page.sections),
    ]
    return "\n\n".join(_wrapped(part) for part in parts) + "\n"


def _topic(topic: AnsweredTopic) -> str:
    rows = [_row(words.line_of(answer)) for answer in topic.answers]
    return f"## {topic.title}\n\n{_table(words.COLUMNS, rows)}"


def _row(line: Line) -> list[str]:
    verdict = f"**{line.verdict}**" + (f" ({_text(line.because)})" if line.because else "")
    return [
        f"{_text(line.says)} ({_text(line.where)})",
        _text(line.paper),
        "<br>".join(_text(each) for each in line.ours),
        verdict,
        "<br>".join(f"`{each}`" for each in line.commands) or "–",
        line.time,
        line.backends,
    ]


def _section(section: Section, picture: str) -> str:
    parts = [f"## {section.title}", *(_text(each) for each in section.sentences)]
    parts += [_of_section(table) for table in section.tables]
    parts += [f"![{section.picture}]({picture})"] if section.picture else []
    parts += [_text(each) for each in section.notes]
    return "\n\n".join(parts)


def _of_section(table: Table) -> str:
    return _table(table.columns, [[_text(cell) for cell in row] for row in table.rows])


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _items(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _text(text: str) -> str:
    """Code stays code, pages of docs/ become links, and everything else stands as it is."""
    pieces = re.split(r"(`[^`]*`|\s+)", text)
    return "".join(piece if piece.startswith("`") or piece.isspace() else _linked(piece) for piece in pieces)


def _linked(word: str) -> str:
    return re.sub(r"docs/([a-z-]+)\.md", lambda found: f"[{found[1].replace('-', ' ')}]({found[1]}.md)", markdown(word))


def _wrapped(part: str) -> str:
    """Paragraphs and items in lines of at most 120; tables, headings and pictures as they are."""
    return "\n".join(_wrap(line) for line in part.split("\n"))


def _wrap(line: str) -> str:
    if line.startswith(("|", "#", "!")):
        return line
    start = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=start, break_long_words=False, break_on_hyphens=False)
