"""What stands on the page of claims, whatever it is written as?"""

from dataclasses import dataclass

from leaderboard.claims import protocol, restart, walk
from leaderboard.claims.answers import AnsweredTopic, Counts, Entries, answer_all, count
from leaderboard.claims.walk import Stop
from leaderboard.claims.words import Section


@dataclass(frozen=True, eq=False)
class Page:
    """Everything that the page says."""

    topics: tuple[AnsweredTopic, ...]
    counts: Counts
    sections: tuple[Section, ...]
    stops: tuple[Stop, ...]
    """of the walk, for its picture; empty if there are no runs of it"""


def make_page(entries: Entries) -> Page:
    """Answer every claim and make the sections.

    Raises:
        UsageError: if an entry's numbers can't be compared.
    """
    topics = answer_all(entries)
    return Page(
        topics=topics,
        counts=count(topics, entries),
        sections=(protocol.section(entries), walk.section(entries), restart.section(entries)),
        stops=tuple(walk.stops(entries)),
    )
