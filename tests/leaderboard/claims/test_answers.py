"""Every claim asks for runs that the parts make, and what is missing or damaged is told in a sentence."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from filters.errors import UsageError
from filters.registry import parse
from harness.claims import PARTS
from leaderboard.claims import dtv, iif
from leaderboard.claims.answers import NOT_THERE, answer, answer_all, by_suite, count, read_claims
from leaderboard.claims.claim import Claim, Part, suites, task_name
from leaderboard.claims.measures import AREA, SE_PEAK
from leaderboard.claims.verdict import ABOVE, BELOW
from leaderboard.entries import catalogue
from leaderboard.entries.submission import entry_of, write_document
from tests.leaderboard.claims.made_up_claims import make_claims_document, make_claims_entry

ROOT = Path(__file__).parents[3]
WALKER = Part("claims-walker", "BipedalWalker", "iif")


def claims() -> list[Claim]:
    return [claim for topic in (*iif.topics(), *dtv.topics()) for claim in topic.claims]


def area(*parts: Part, region: object = ABOVE) -> Claim:
    return Claim("a claim", "a paper", measure=AREA, region=region, parts=parts)  # type: ignore[arg-type]


def test_every_part_of_a_claim_is_among_the_runs() -> None:
    for claim in claims():
        for part in claim.parts:
            made = PARTS[part.suite.removeprefix("claims-")]
            specs = {"none", *(str(parse(spec)) for spec in made.filters)}
            assert made.suite == part.suite
            assert {part.spec, part.against} <= specs, part
            assert part.task in {task_name(task) for task in catalogue.suites()[part.suite].tasks}, part


def test_a_claim_is_tested_or_says_why_not() -> None:
    for claim in claims():
        tested = (claim.measure is not None, claim.region is not None, bool(claim.parts))
        assert tested == ((not claim.untested,) * 3), claim.says
    says = [claim.says for claim in claims()]
    assert len(set(says)) == len(says)


def test_the_suites_are_those_of_the_parts() -> None:
    assert set(suites()) == {part.suite for part in PARTS.values()}


def test_without_an_entry_every_claim_is_not_tested_and_says_why() -> None:
    topics = answer_all({})
    for answered in (each for topic in topics for each in topic.answers):
        assert answered.verdict == "not tested"
        assert answered.why == (answered.claim.untested or NOT_THERE)
    counts = count(topics, {})
    assert (counts.tested, counts.expected, counts.runs) == (0, 0.0, 0)


def test_an_entry_answers_the_claims_on_it_and_no_other() -> None:
    entries = {"claims-walker": make_claims_entry("claims-walker")}
    answers = [each for topic in answer_all(entries) for each in topic.answers]
    tested = {each.claim.says for each in answers if each.verdict != "not tested"}
    assert (
        len(tested) == 5
    )  # three savings, the gain, and random against none; the last claim of random needs more suites
    assert all("BipedalWalker" in says for says in tested)


def test_verdict_time_and_backend_come_from_the_runs() -> None:
    entries = {"claims-walker": make_claims_entry("claims-walker")}
    found = answer(area(WALKER), entries)
    assert found.verdict == "confirmed"
    assert found.backends == ("envpool",)
    used = [cell for cell in entries["claims-walker"].cells if cell.spec in ("iif", "none")]
    phases = ("environment", "inference", "filter", "update", "evaluation")
    assert found.seconds == pytest.approx(sum(cell.phase_seconds.get(phase, 0) for cell in used for phase in phases))
    assert answer(area(WALKER, region=BELOW), entries).verdict == "contradicted"
    assert answer(area(replace(WALKER, against="random")), entries).verdict == "confirmed"


def test_a_claim_on_several_tasks_needs_them_all() -> None:
    entry = make_claims_entry("claims-adam")
    worse = tuple(
        replace(cell, means=cell.curve - (2.0 if cell.spec == "iif" else 0.0))
        if cell.task.startswith("Lunar")
        else cell
        for cell in entry.cells
    )
    both = area(*(Part("claims-adam", task, "iif") for task in iif.ADAM))
    assert answer(both, {"claims-adam": entry}).verdict == "confirmed"
    found = answer(both, {"claims-adam": replace(entry, cells=worse)})
    assert [finding.verdict for _, finding in found.findings] == ["confirmed", "contradicted"]
    assert found.verdict == "contradicted"


def test_a_filter_that_never_gets_there_saves_nothing() -> None:
    entry = make_claims_entry("claims-walker")
    best = min(cell.curve.max() for cell in entry.cells if cell.spec == "none")
    cells = [replace(cell, means=cell.curve * best / 2) if cell.spec == "iif" else cell for cell in entry.cells]
    entries = {"claims-walker": replace(entry, cells=tuple(cells))}
    found = answer(Claim("saves", "a paper", measure=SE_PEAK, region=ABOVE, parts=(WALKER,)), entries)
    ((_, finding),) = found.findings
    assert finding.bounds == finding.seeds == 5
    assert finding.interval.low == float("-inf")
    assert found.verdict in ("contradicted", "not shown")


def test_what_an_entry_lacks_is_named() -> None:
    entry = make_claims_entry("claims-walker")
    no_filter = replace(entry, cells=tuple(cell for cell in entry.cells if cell.spec != "random"))
    found = answer(area(replace(WALKER, spec="random")), {"claims-walker": no_filter})
    assert (found.verdict, found.why) == ("not tested", "the entry claims-walker has no random on BipedalWalker")
    one_less = tuple(cell for cell in entry.cells if (cell.spec, cell.seed) != ("iif", 3))
    found = answer(area(WALKER), {"claims-walker": replace(entry, cells=one_less)})
    assert found.why == "iif can't be compared with none: seed 3 is missing for iif"
    assert answer(area(WALKER, Part("claims-adam", "X", "iif")), {"claims-walker": entry}).why == NOT_THERE


def test_only_entries_of_the_claims_are_read(tmp_path: Path) -> None:
    write_document(tmp_path / "claims-walker.json", make_claims_document("claims-walker"))
    (tmp_path / "somebody.json").write_text("{")
    assert list(read_claims(tmp_path)) == ["claims-walker"]
    with pytest.raises(UsageError, match="is no folder"):
        read_claims(tmp_path / "nowhere")
    mixed_up = entry_of(make_claims_document("claims-walker"), "claims-adam")
    with pytest.raises(UsageError, match="the entry claims-adam is of the suite claims-walker"):
        by_suite([mixed_up])


@pytest.mark.parametrize("damage", ["cut short", "edited"])
def test_a_damaged_entry_is_one_sentence(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "claims-walker.json"
    write_document(file, make_claims_document("claims-walker"))
    text = file.read_text()
    file.write_text(text[: len(text) // 2] if damage == "cut short" else text.replace("Ada Lovelace", "Somebody Else"))
    command = [sys.executable, "-m", "leaderboard.claims", "--submissions", tmp_path, "--markdown", tmp_path / "c.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "claims-walker.json" in done.stderr
    assert not (tmp_path / "c.md").exists()
