"""Which tasks and suites can a submission name, and what is known of them?

The facts come from a file, so that no agent and no environment has to be imported to look at a submission.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("tasks.json")
"""made by `python -m harness.tasks.facts --write`"""

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TaskFacts:
    """What runs on a task have to be like."""

    agent: str
    """the module in `algos` that trains on it"""
    args: Json
    """every setting of the agent but seed and device"""
    references: dict[str, float]
    """the returns of a `random` and of a `solved` policy"""
    returns: tuple[float, float]
    """lowest and highest return that an episode can have"""
    checkpoints: tuple[int, ...]
    """[K] environment steps before each evaluation"""
    rounds: int
    batch_size: int
    """n, records a round"""
    filter_defaults: Mapping[str, Mapping[str, Any]]
    """field values that a filter takes on this task unless its spec says otherwise"""
    apply: str | None
    """how selections are applied; None: as each filter says"""

    @property
    def corrupted(self) -> bool:
        """Whether records are made harmful on purpose."""
        return bool(self.args["corrupt"] != "none")


@dataclass(frozen=True)
class Suite:
    """Tasks that are run together."""

    tasks: tuple[str, ...]
    seeds: int
    """how many: 0 to that number less one"""


@cache
def tasks() -> dict[str, TaskFacts]:
    """All tasks by id."""
    return {
        name: TaskFacts(
            **{**facts, "returns": tuple(facts["returns"]), "checkpoints": tuple(facts["checkpoints"])},
        )
        for name, facts in _content()["tasks"].items()
    }


@cache
def suites() -> dict[str, Suite]:
    """All suites by name."""
    return {name: Suite(tuple(found["tasks"]), found["seeds"]) for name, found in _content()["suites"].items()}


def _content() -> Json:
    content: Json = json.loads(FILE.read_text(encoding="utf-8"))
    return content
