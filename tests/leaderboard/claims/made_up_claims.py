"""Which made-up entries do the tests of the claims use? One for every suite, with its tasks, filters and seeds."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from harness.claims import PARTS
from leaderboard.entries import catalogue
from leaderboard.entries.submission import Entry, digest_of, entry_of
from tests.leaderboard.made_up import make_document

GAINS = {"iif": 0.25, "random": -0.15, "random-matched": -0.1, "reward": -0.3, "dtv-loo": 0.15, "dtv": 0.1}
"""how much sooner, as a share of the run, each filter gets where the baseline gets; others: 0.05"""


def make_claims_document(
    suite: str, *, seeds: int | None = None, specs: Sequence[str] = (), gains: Mapping[str, float] = GAINS
) -> dict[str, Any]:
    """The document of one suite as the runs of its part would make it, but with few evaluation episodes."""
    part, facts = PARTS[suite.removeprefix("claims-")], catalogue.tasks()
    tasks = {task: facts[task] for task in catalogue.suites()[suite].tasks}
    document = make_document(
        len(suite),
        gains={spec: gains.get(spec.partition(":")[0], 0.05) for spec in specs or part.filters},
        tasks={task: len(each.checkpoints) for task, each in tasks.items()},
        seeds=range(seeds or part.seeds),
        suite=suite,
    )
    for task, each in tasks.items():
        document["tasks"][task] |= {"args": each.args, "steps": list(each.checkpoints)}
    return document | {"digest": digest_of(document)}


@cache
def make_claims_entry(suite: str) -> Entry:
    """That document as an entry."""
    return entry_of(make_claims_document(suite), suite)
