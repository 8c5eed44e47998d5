"""What the page of claims says, in docs/ and on the site, and its sections beside the claims."""

import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from leaderboard.claims import measures, protocol, restart, walk
from leaderboard.claims.answers import Entries
from leaderboard.claims.claim import suites
from leaderboard.claims.markdown import claims_markdown
from leaderboard.claims.page import make_page
from leaderboard.claims.site import claims_page
from leaderboard.claims.words import COLUMNS, Table, duration
from leaderboard.entries.submission import write_document
from leaderboard.statistics.pairing import cells_of
from tests.leaderboard.claims.made_up_claims import make_claims_document, make_claims_entry

ROOT = Path(__file__).parents[3]
SOME = ("claims-settings", "claims-walk", "claims-restart", "claims-protocol", "claims-walker")


@pytest.fixture(scope="module")
def entries() -> Entries:
    return {suite: make_claims_entry(suite) for suite in SOME}


def run_claims(folder: Path, submissions: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leaderboard.claims", "--submissions", submissions]
    command += ["--markdown", folder / "claims.md", "--picture", folder / "claims-walk.svg"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def tables(text: str) -> list[list[list[str]]]:
    """Tables of rows of cells, as Markdown shows them."""
    html = MarkdownIt("commonmark").enable("table").render(text)
    return [
        [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall(r"<tr>(.*?)</tr>", each, re.DOTALL)
        ]
        for each in re.findall(r"<table>(.*?)</table>", html, re.DOTALL)
    ]


def test_the_page_is_what_the_command_makes_of_the_accepted_entries(tmp_path: Path) -> None:
    done = run_claims(tmp_path, ROOT / "leaderboard" / "submissions")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "claims.md").read_bytes() == (ROOT / "docs" / "claims.md").read_bytes()
    picture = ROOT / "docs" / "claims-walk.svg"
    assert (tmp_path / "claims-walk.svg").exists() == picture.exists()
    if picture.exists():
        assert (tmp_path / "claims-walk.svg").read_bytes() == picture.read_bytes()


def test_the_command_writes_page_and_picture_and_the_same_ones_again(tmp_path: Path) -> None:
    submissions = tmp_path / "in"
    submissions.mkdir()
    write_document(submissions / "claims-walk.json", make_claims_document("claims-walk"))
    done = run_claims(tmp_path, submissions)
    assert (done.returncode, done.stderr) == (0, "")
    first = {name: (tmp_path / name).read_bytes() for name in ("claims.md", "claims-walk.svg")}
    assert b"](claims-walk.svg)" in first["claims.md"]
    run_claims(tmp_path, submissions)
    assert {name: (tmp_path / name).read_bytes() for name in first} == first


def test_every_row_is_whole_and_says_what_is_needed(entries: Entries) -> None:
    page = make_page(entries)
    found = tables(claims_markdown(page, picture="p.svg"))
    rows = [row for table in found if table[0] == list(COLUMNS) for row in table[1:]]
    assert len(rows) == sum(page.counts.by_verdict.values())
    assert all(len(row) == len(table[0]) for table in found for row in table)
    for claim, _, ours, verdict, runs, time, backend in rows:
        kind = re.match("<strong>(.*?)</strong>", verdict)
        assert kind, claim
        if kind[1] == "not tested":
            assert re.search(r"\(.{10,}\)", verdict), claim
            assert (ours, time, backend) == ("–", "–", "–")
        else:
            assert re.search(r"[+−]\d.* \[[+−].*, [+−].*\]; \d+ ", unescape(ours)), ours
            assert "harness.claims --part" in runs
            assert re.fullmatch(r"[\d.]+ (s|min|h)", time)
            assert backend == "envpool"
        if kind[1] == "not shown" and "<br>" not in ours:
            assert "from " in verdict


def test_bounds_are_shown_as_bounds(entries: Entries) -> None:
    entry = entries["claims-walker"]
    cells = [replace(cell, means=cell.curve / 2) if cell.spec == "iif" else cell for cell in entry.cells]
    text = claims_markdown(make_page({"claims-walker": replace(entry, cells=tuple(cells))}), picture="p.svg")
    (row,) = (line for line in text.splitlines() if line.startswith("| BipedalWalker") and "(SE\\_peak)" in line)
    assert re.search(r"\| ≤ [+−][\d.]+ % \\\[−∞, [+−][\d.]+\\\]; 5 of 5 seeds never there", row)
    assert "**confirmed**" not in row


def test_the_number_of_claims_that_chance_confirms_is_said(entries: Entries) -> None:
    page = make_page(entries)
    text = " ".join(claims_markdown(page, picture="p.svg").split())
    assert page.counts.tested > 5
    assert f"{page.counts.tested} claims are tested" in text
    assert f"If none of them were true, {0.025 * page.counts.tested:.1f} of them would be confirmed by chance" in text


def test_the_site_has_the_same_rows(entries: Entries) -> None:
    name, html = claims_page(entries.values())
    assert name == "claims.html"
    assert html == claims_page(entries.values())[1]
    found = tables(claims_markdown(make_page(entries), picture="p.svg"))
    shown = re.findall(r"<table.*?>(.*?)</table>", html, re.DOTALL)
    assert [len(re.findall("<tr>", table)) for table in shown] == [len(table) for table in found]
    assert "<script" not in html.partition("<body>")[2]
    assert "&lt;" not in html
    assert "claims.html" in (ROOT / "leaderboard" / "site" / "index.html").read_text()


def test_a_section_without_runs_names_the_command() -> None:
    for section, parts in (
        (protocol.section({}), ("protocol", "settings")),
        (walk.section({}), ("walk", "settings")),
        (restart.section({}), ("restart",)),
    ):
        assert not section.tables
        said = " ".join((*section.sentences, *section.notes))
        assert all(f"`python -m harness.claims --part {part}`" in said for part in parts)


def rows_of(section_tables: tuple[Table, ...]) -> list[dict[str, str]]:
    (table,) = section_tables
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_protocol_is_that_of_the_runs_and_of_fewer_of_their_evaluations(entries: Entries) -> None:
    rows = rows_of(protocol.section(entries).tables)
    assert [(row["Episodes an evaluation"], row["Rounds between evaluations"]) for row in rows] == [
        (episodes, every) for episodes in ("1,000", "100") for every in ("1", "2", "4")
    ]
    assert {row["Seeds"] for row in rows} == {"5"}  # those of both
    alone = protocol.section({"claims-protocol": entries["claims-protocol"]})
    assert len(rows_of(alone.tables)) == 3
    assert any("--part settings" in note for note in alone.notes)


def test_a_thinner_run_keeps_the_end(entries: Entries) -> None:
    cell = entries["claims-protocol"].cells[0]
    thin = protocol.thin(cell, 3)
    count = len(cell.steps)
    chosen = [*range(2, count, 3), *([count - 1] if count % 3 else [])]
    assert thin.steps.tolist() == cell.steps[chosen].tolist()
    assert thin.curve.tolist() == cell.curve[chosen].tolist()
    assert protocol.thin(cell, 1).curve.tolist() == cell.curve.tolist()


def test_the_walk_goes_from_one_setting_to_the_other(entries: Entries) -> None:
    stops = walk.stops(entries)
    assert [stop.name for stop in stops] == [
        "IIF setting",
        "IIF, longer",
        "IIF + scale",
        "IIF + heads",
        "IIF + envs",
        "IIF + clip",
        "IIF + scale, heads",
        "IIF + scale, envs",
        "IIF + heads, envs",
        "IIF + scale, heads, envs",
        "DTV setting",
    ]
    assert stops[0].changed == ("40", "255", "64 64", "1 × 2,048", "free", "10")
    assert stops[4].changed == ("79", "255", "64 64", "16 × 128", "free", "5")
    assert stops[-1].changed == ("79", "10", "none", "16 × 128", "≤ 0.5", "10")
    for stop in stops:
        assert stop.interval.mean == pytest.approx(stop.areas[1] - stop.areas[0])
    assert [stop.name for stop in walk.stops({"claims-settings": entries["claims-settings"]})] == [
        "IIF setting",
        "DTV setting",
    ]


def test_the_four_arms_add_up(entries: Entries) -> None:
    entry = entries["claims-restart"]
    for task in ("MiniGrid-Empty-8x8", "LunarLander"):
        arms = restart.arms_of(entry, task)
        assert all(len(cells) == 5 for cells in arms.values())
        means = {term: restart.difference(arms, term, measures.AREA).mean for term in restart.TERMS}
        plain, without, again, with_ = (
            means["filter, without restarts"],
            *(means[term] for term in ("restarts, without filter", "filter, with restarts", "both, against neither")),
        )
        assert with_ == pytest.approx(without + again)
        assert means["what restarts add to the filter's gain"] == pytest.approx(again - plain)
        assert with_ == pytest.approx(
            np.mean(measures.areas(cells_of(arms["both"], "iif")) - measures.areas(cells_of(arms["plain"], "none")))
        )
    assert len(rows_of(restart.section(entries).tables)) == 2 * len(restart.TERMS)


def test_an_arm_that_is_missing_is_told(entries: Entries) -> None:
    entry = entries["claims-restart"]
    cells = tuple(cell for cell in entry.cells if not (cell.spec == "iif" and cell.task.startswith("Lunar")))
    section = restart.section({"claims-restart": replace(entry, cells=cells)})
    assert len(rows_of(section.tables)) == len(restart.TERMS)
    assert "LunarLander: an arm or a seed is missing, so nothing is compared." in section.notes


def test_seconds_as_people_say_them() -> None:
    assert [duration(seconds) for seconds in (12, 90, 5400, float("nan"))] == ["12 s", "2 min", "1.5 h", "–"]


def test_suites_that_are_looked_for_are_there() -> None:
    assert {protocol.FULL, *protocol.USUAL, walk.SUITE, walk.ENDS, restart.SUITE} <= set(suites())
