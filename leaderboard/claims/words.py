"""How are claims, numbers and verdicts written, in Markdown and on the site alike?

Text holds code in backticks and pages as `docs/NAME.md` without any; each format makes of that what it can.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.board.text import DASH, count, number, signed
from leaderboard.claims.answers import Answer, AnsweredTopic, Counts
from leaderboard.claims.claim import Part, Reported
from leaderboard.claims.iif import MARGIN
from leaderboard.claims.measures import EXPLAINED, Measure
from leaderboard.claims.verdict import Finding, Region, Verdict
from leaderboard.statistics.significance import Interval


@dataclass(frozen=True)
class Table:
    """A table of plain text; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page beside the claims."""

    title: str
    sentences: tuple[str, ...]
    """paragraphs before the tables"""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """paragraphs after them"""
    picture: str = ""
    """what the picture shows that belongs to it; empty if there is none"""


@dataclass(frozen=True)
class Line:
    """A claim as the page shows it."""

    says: str
    where: str
    paper: str
    ours: tuple[str, ...]
    """a line for each part"""
    verdict: Verdict
    because: str
    """what the verdict needs next to it: what could have been shown, or why nothing was tested"""
    commands: tuple[str, ...]
    time: str
    backends: str


COLUMNS = ("Claim", "Paper", "Ours [95 %]", "Verdict", "Runs", "CPU time", "Backend")

TITLE = "The papers' claims, and what our runs say of them"
INTRODUCTION = (
    "Made by `python -m leaderboard.claims` from the accepted entries in leaderboard/submissions/; every number of "
    "ours is computed from their evaluation returns. The claims are those of two papers, in our own words: IIF is Hu "
    "et al., “A Snapshot of Influence”, arXiv 2505.19281; DTV is Jia et al., “Not All Rollouts Are Worth Learning”, "
    "arXiv 2609.35072. The numbers of seeds, tasks and filters were fixed before the first run.",
)
RULE = (
    "A claim says where a mean over seeds lies: above 0, below 0, above a margin. Both sides of a difference have the "
    "same seeds, and their 95 % t interval (mean ± t(0.975, S − 1) · SE) decides:",
)
RULE_ITEMS = (
    "**confirmed**: the interval lies wholly where the claim says. A claim on several tasks or settings is confirmed "
    "only if each of them is.",
    "**contradicted**: the interval lies wholly elsewhere. Of a claim on k tasks or settings one is enough, so there "
    "the interval is at 1 − 5 % / k.",
    "**not shown**: neither. “From x” is the smallest distance from the edge of what is claimed (0 or the margin) that "
    "a paired t test at 5 % would find with 80 % power, at the spread of these seeds.",
    "**not tested**: there are no such runs, or not yet.",
)
RULE_NOTES = (
    "The paper's number is shown next to ours, with the word whether it lies in our interval, but equality is not what "
    "is tested: protocol and environments differ. “No worse” and “alike” mean no worse, or nothing else, than "
    f"{MARGIN:g} of the distance between a random policy (0) and a solved task (1).",
    "Where a paper compares learning curves by eye (“faster”, “better”, “harms”), Δ AUC stands for that: it is the "
    "leaderboard's primary endpoint.",
    "Where a filter never reaches the level that a saving speaks of, the seed is only a bound: the filter may need any "
    "number of steps more. The mean is then a bound as well (≤), and the interval has no lower limit, so such runs can "
    "contradict a saving but never confirm one. (The board charges the whole budget, and in time never counts that as "
    "a saving. Here the bound in time is the time that was spent, and may be above 0.)",
    "Evaluations are noisy, so the best of them is a lucky one, and a filter that changes nothing would need more "
    "steps to match it: its saving lies below 0 on average. A contradicted saving is therefore not yet a harm; Δ AUC "
    "says that.",
    "CPU time is that of training and evaluation of all runs that the row uses, each on one thread; rows share runs. "
    "Each entry's page on the board says under which versions and on which hardware.",
)


def line_of(answer: Answer) -> Line:
    """One row of the page."""
    claim, findings = answer.claim, answer.findings
    alone = len(claim.parts) == 1
    return Line(
        says=claim.says,
        where=claim.where,
        paper=_reported(claim.reported, claim.measure),
        ours=tuple(_ours(answer, part, finding, alone=alone) for part, finding in findings) or (DASH,),
        verdict=answer.verdict,
        because=answer.why or (_because(claim.measure, claim.region, findings[0][1]) if alone and findings else ""),
        commands=tuple(dict.fromkeys(part.command for part in claim.parts)),
        time=duration(answer.seconds),
        backends=", ".join(answer.backends) or DASH,
    )


def at_a_glance(counts: Counts) -> str:
    """How many claims got which verdict, and with how many runs."""
    said = ", ".join(f"{many} {kind}" for kind, many in counts.by_verdict.items())
    runs = f" {count(counts.runs, 'run', 'runs')}, {duration(counts.seconds)} of CPU time." if counts.runs else ""
    return f"{count(sum(counts.by_verdict.values()), 'claim', 'claims')}: {said}.{runs}"


def multiplicity(counts: Counts) -> str:
    """What chance alone would give."""
    if not counts.tested:
        return (
            "No claim is tested yet. Each test confirms a claim that is not true with a probability of at most 2.5 %."
        )
    return (
        f"{count(counts.tested, 'claim is', 'claims are')} tested, each by itself. Each test confirms a claim that is "
        "not true with a probability of at most 2.5 % (the mean at the very edge of what is claimed), and contradicts "
        f"a true one at most as often. If none of them were true, {number(counts.expected, digits=1)} of them would be "
        "confirmed by chance at most, on average; rows that share runs err together. The intervals take the seeds' "
        "differences for normal, which so few can't show."
    )


def measures_used(topics: Sequence[AnsweredTopic]) -> list[str]:
    """What each measure of the page is."""
    used = {answer.claim.measure for topic in topics for answer in topic.answers}
    return [f"**{measure.name}**: {words}" for measure, words in EXPLAINED.items() if measure in used]


def estimate(interval: Interval, measure: Measure, *, bounds: int = 0) -> str:
    """Mean and limits in the unit of the measure."""
    mean = f"{'≤ ' if bounds else ''}{value(interval.mean, measure)}"
    if math.isnan(interval.high):
        return mean
    digits = _digits(interval.mean, measure)
    low, high = (_written(limit, measure, digits=digits) for limit in (interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


def value(amount: float, measure: Measure) -> str:
    """A number with its sign and its unit."""
    return _written(amount, measure, digits=_digits(amount, measure)) + (" %" if measure.percent else "")


def duration(seconds: float) -> str:
    """Seconds as people say them: 12 min, 3.4 h."""
    if math.isnan(seconds):
        return DASH
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _ours(answer: Answer, part: Part, finding: Finding, *, alone: bool) -> str:
    claim = answer.claim
    assert claim.measure is not None
    said = estimate(finding.interval, claim.measure, bounds=finding.bounds)
    if finding.bounds:
        said += f"; {finding.bounds} of {count(finding.seeds, 'seed', 'seeds')} never there"
    else:
        said += f"; {count(finding.seeds, 'seed', 'seeds')}"
    if claim.reported.value is not None:
        said += f"; the paper's mean lies {'inside' if _holds(finding.interval, claim.reported.value) else 'outside'}"
    if alone:
        return said
    because = _because(claim.measure, claim.region, finding)
    return f"{_label(answer, part)}: {said}; {finding.verdict}{f' ({because})' if because else ''}"


def _label(answer: Answer, part: Part) -> str:
    """What tells a part from the others."""
    specs = {each.spec for each in answer.claim.parts}
    tasks = {each.task for each in answer.claim.parts}
    words = [*([part.task] if len(tasks) > 1 else []), *([f"`{part.spec}`"] if len(specs) > 1 else [])]
    return ", ".join(words) or part.task


def _because(measure: Measure | None, region: Region | None, finding: Finding) -> str:
    """What a finding that shows nothing could have shown."""
    if measure is None or region is None or finding.verdict != "not shown":
        return ""
    if finding.seeds == 1:
        return "a single seed has no interval"
    if math.isnan(finding.detectable):
        return "no spread between the seeds"
    # rounded up: at the printed value the power is there
    scale, digits = (100, 1) if measure.percent else (1, _digits(finding.detectable, measure))
    least = math.ceil(finding.detectable * scale * 10**digits) / 10**digits
    said = number(least, digits=digits) + (" %" if measure.percent else "")
    if finding.bounds and region.low > -math.inf:
        return f"with bounds nothing could confirm it; contradiction from −{said}"
    return f"from {said}"


def _holds(interval: Interval, amount: float) -> bool:
    return interval.low <= amount <= interval.high


def _reported(reported: Reported, measure: Measure | None) -> str:
    words = [reported.text] if reported.text else []
    if reported.limits and measure:
        digits = 2
        low, high = (_written(limit, measure, digits=digits) for limit in reported.limits)
        words.insert(0, f"[{low}, {high}]")
    elif reported.value is not None and measure:
        error = f" ± {number(100 * reported.error, digits=1)}" if reported.error is not None else ""
        words.insert(0, f"{number(100 * reported.value, digits=1)}{error} %")
    return "; ".join(words) or "no number"


def _digits(amount: float, measure: Measure) -> int:
    return 1 if measure.percent or abs(amount) >= 10 else 3


def _written(amount: float, measure: Measure, *, digits: int) -> str:
    if math.isinf(amount):
        return "−∞" if amount < 0 else "∞"
    write = signed if measure.signed else number
    return write(100 * amount if measure.percent else amount, digits=digits)
