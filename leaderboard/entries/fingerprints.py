"""Are these the returns of an entry that was accepted before?"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.entries.submission import Json, episodes_of


@dataclass(frozen=True)
class Accepted:
    """What a new submission must not repeat of an accepted entry."""

    key: str
    digest: str
    fingerprints: Mapping[str, str]
    """class path by fingerprint, the baseline left out"""


def fingerprints(document: Json) -> dict[str, str]:
    """A hash of each filter's returns and lengths on all tasks and seeds, by spec; the document's shape is checked."""
    found = {}
    for spec in document["filters"]:
        own = [cell for cell in document["cells"] if cell["filter"] == spec]
        episodes = sorted([cell["task"], cell["seed"], *_episodes(cell)] for cell in own)
        found[spec] = hashlib.sha256(json.dumps(episodes).encode("ascii")).hexdigest()
    return found


def _episodes(cell: Json) -> list[object]:
    summary = cell.get("summary")
    more = [list(map(float, summary["means"]))] if summary else []
    return [_floats(episodes_of(cell, "returns")), episodes_of(cell, "lengths"), *more]


def _floats(returns: list[list[float]]) -> list[list[float]]:
    """1 and 1.0 are one number."""
    return [[float(value) for value in episodes] for episodes in returns]


def accepted(document: Json, key: str, *, baseline: str) -> Accepted:
    """The part of a valid document that later ones are compared with."""
    prints = fingerprints(document)
    return Accepted(
        key=key,
        digest=document["digest"],
        fingerprints={
            print: document["filters"][spec]["class"] for spec, print in prints.items() if print != prints.get(baseline)
        },
    )
