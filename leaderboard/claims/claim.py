"""What is a claim: what a paper says, which number of which runs it speaks of, and where that number would lie?"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.claims.measures import Measure
from leaderboard.claims.verdict import Region
from leaderboard.entries import catalogue

PREFIX = "claims-"
"""how the names of the suites begin that hold the runs"""


@dataclass(frozen=True)
class Part:
    """A filter on a task, and what it is held against."""

    suite: str
    """also the key of the accepted entry"""
    task: str
    """name without version and protocol"""
    spec: str
    against: str = "none"

    @property
    def command(self) -> str:
        """What makes the runs."""
        return command_of(self.suite)


@dataclass(frozen=True)
class Reported:
    """The paper's own number, in the unit of the measure (a share is between 0 and 1)."""

    value: float | None = None
    error: float | None = None
    """standard error"""
    limits: tuple[float, float] | None = None
    """of a 95 % interval"""
    text: str = ""
    """what else it says, or what it says instead"""


@dataclass(frozen=True)
class Claim:
    """One row of the page."""

    says: str
    """the claim in our own words"""
    where: str
    """the paper and the part of it that makes the claim"""
    reported: Reported = Reported()
    measure: Measure | None = None
    """None where nothing is tested"""
    region: Region | None = None
    """where the claim says that the mean over the seeds lies, on every part"""
    parts: tuple[Part, ...] = ()
    untested: str = ""
    """why it is not tested, whatever runs there are"""


@dataclass(frozen=True)
class Topic:
    """Claims under one heading."""

    title: str
    claims: tuple[Claim, ...]


def parts(suite: str, tasks: Sequence[str], specs: Sequence[str], against: str = "none") -> tuple[Part, ...]:
    """Every filter on every task."""
    return tuple(Part(suite, task, spec, against) for task in tasks for spec in specs)


def command_of(suite: str) -> str:
    """What makes the runs of a suite."""
    return f"python -m harness.claims --part {suite.removeprefix(PREFIX)}"


def suites() -> tuple[str, ...]:
    """The suites that hold the runs behind the claims."""
    return tuple(name for name in catalogue.suites() if name.startswith(PREFIX))


def task_name(task: str) -> str:
    """`Acrobot/v1@envpool` -> Acrobot; that environments start anew every so many rounds stays: @checkpoint-1."""
    name, _, rest = task.partition("/")
    return "@".join([name, *(each for each in rest.split("@")[1:] if each.startswith("checkpoint-"))])
