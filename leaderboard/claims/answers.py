"""What do the accepted entries say of every claim?"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filters.errors import UsageError
from leaderboard.claims import dtv, iif, verdict
from leaderboard.claims.claim import Claim, Part, suites, task_name
from leaderboard.claims.verdict import Finding, Verdict, conclude, judge
from leaderboard.entries.submission import Entry, read_entry
from leaderboard.runs.store import TRAINING, CellRun
from leaderboard.statistics.pairing import cells_of, mismatch, missing_seeds

Entries = Mapping[str, Entry]
"""by suite, as far as they are accepted"""

NOT_THERE = "the runs are not published yet"


@dataclass(frozen=True, eq=False)
class Answer:
    """A claim and what our runs say of it."""

    claim: Claim
    verdict: Verdict
    why: str = ""
    """why it is not tested"""
    findings: tuple[tuple[Part, Finding], ...] = ()
    """of each part; empty if it is not tested"""
    seconds: float = math.nan
    """of training and evaluation of all runs that were used, each on its own processor"""
    backends: tuple[str, ...] = ()
    """what stepped the environments of these runs"""


@dataclass(frozen=True, eq=False)
class AnsweredTopic:
    """Answers under one heading."""

    title: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Counts:
    """All verdicts, and how many of them chance alone would give."""

    by_verdict: Mapping[Verdict, int]
    tested: int
    expected: float
    """claims confirmed by chance at most, on average, if the mean of each lay at the edge of what is claimed"""
    runs: int
    """that are published; those that entries share count once"""
    seconds: float
    """of training and evaluation of these runs"""


def read_claims(folder: Path) -> dict[str, Entry]:
    """The accepted entries behind the claims, by suite.

    Raises:
        UsageError: if there is no such folder, or one of them can't be read or is of another suite.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the one that holds the submissions")
    paths = [folder / f"{suite}.json" for suite in suites()]
    return by_suite(read_entry(path) for path in paths if path.exists())


def by_suite(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Those of the entries whose key is the name of a suite of the claims.

    Raises:
        UsageError: if one of these is of another suite.
    """
    found = {entry.key: entry for entry in entries if entry.key in suites()}
    for key, entry in found.items():
        if entry.suite != key:
            raise UsageError(
                f"the entry {key} is of the suite {entry.suite}; make it anew with "
                f"`python -m leaderboard.submit --suite {key}`"
            )
    return found


def answer_all(entries: Entries) -> tuple[AnsweredTopic, ...]:
    """Every claim of both papers.

    Raises:
        UsageError: if an entry's numbers can't be compared.
    """
    return tuple(
        AnsweredTopic(topic.title, tuple(answer(claim, entries) for claim in topic.claims))
        for topic in (*iif.topics(), *dtv.topics())
    )


def answer(claim: Claim, entries: Entries) -> Answer:
    """The verdict on one claim; not tested if a run of any of its parts is missing.

    Raises:
        UsageError: if an entry's numbers can't be compared.
    """
    if claim.measure is None or claim.region is None:
        return Answer(claim, "not tested", why=claim.untested)
    reason = next((reason for part in claim.parts if (reason := obstacle(part, entries))), "")
    if reason:
        return Answer(claim, "not tested", why=reason)
    findings: list[tuple[Part, Finding]] = []
    used: dict[Path, CellRun] = {}
    for part in claim.parts:
        ours, theirs = sides(part, entries)
        try:
            sample = claim.measure.of(ours, theirs)
        except (ValueError, KeyError, ZeroDivisionError) as error:
            raise UsageError(
                f"the entry {part.suite} can't be compared on {part.task} ({error}); "
                "`python -m leaderboard.validate` says what is wrong"
            ) from error
        findings.append((part, judge(sample, claim.region, parts=len(claim.parts))))
        used |= {cell.path: cell for cell in (*ours, *theirs)}
    return Answer(
        claim,
        conclude([finding for _, finding in findings]),
        findings=tuple(findings),
        seconds=cpu_seconds(used.values()),
        backends=tuple(sorted({backend_of(cell) for cell in used.values()})),
    )


def obstacle(part: Part, entries: Entries) -> str:
    """Why a part can't be tested; empty if it can."""
    if part.suite not in entries:
        return NOT_THERE
    cells = of_task(entries[part.suite], part.task)
    lacking = [spec for spec in (part.spec, part.against) if not cells_of(cells, spec)]
    if lacking:
        return f"the entry {part.suite} has no {lacking[0]} on {part.task}"
    problem = missing_seeds(cells, [], part.spec, part.against) or mismatch(cells, part.spec, part.against)
    return f"{part.spec} can't be compared with {part.against}: {problem}" if problem else ""


def sides(part: Part, entries: Entries) -> tuple[list[CellRun], list[CellRun]]:
    """The runs of the filter and those of what it is held against, by seed."""
    cells = of_task(entries[part.suite], part.task)
    return cells_of(cells, part.spec), cells_of(cells, part.against)


def of_task(entry: Entry, task: str) -> list[CellRun]:
    """The runs on a task, whatever its version and protocol."""
    return [cell for cell in entry.cells if task_name(cell.task) == task]


def count(topics: Iterable[AnsweredTopic], entries: Entries) -> Counts:
    """How often each verdict was reached, and with how many runs."""
    verdicts = [answer.verdict for topic in topics for answer in topic.answers]
    kinds: tuple[Verdict, ...] = ("confirmed", "contradicted", "not shown", "not tested")
    tested = len(verdicts) - verdicts.count("not tested")
    cells = {(cell.task, cell.spec, cell.seed): cell for entry in entries.values() for cell in entry.cells}
    return Counts(
        {kind: verdicts.count(kind) for kind in kinds},
        tested,
        verdict.CHANCE * tested,
        len(cells),
        cpu_seconds(cells.values()),
    )


def cpu_seconds(cells: Iterable[CellRun]) -> float:
    """Seconds of training and evaluation of runs on one thread each."""
    counted = (*TRAINING, "evaluation")
    return sum(seconds for cell in cells for phase, seconds in cell.phase_seconds.items() if phase in counted)


def backend_of(cell: CellRun) -> str:
    """What steps the environments."""
    return str(cell.config["args"].get("env_backend", "gymnasium"))
