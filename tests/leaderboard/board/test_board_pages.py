"""What the pages and LEADERBOARD.md say, that hostile text stays text, and the command that writes them."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import leaderboard.build
from filters.errors import UsageError
from leaderboard.board.markdown import leaderboard_markdown
from leaderboard.board.pages import safe_url, script_json, site_files
from leaderboard.board.rows import EntrySummary, Saving, rankings, summarise
from leaderboard.board.text import limits, markdown, number, p_value, printable, saving, signed
from leaderboard.build import build, read_summaries
from leaderboard.entries.submission import digest_of, entry_of, write_document
from leaderboard.statistics.significance import Interval
from tests.leaderboard.made_up import GAINS, make_document, make_entry, write_entries

ROOT = Path(__file__).parents[3]
TWO = {"iif": 0.3, "reward": -0.3}


def run_build(submissions: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "leaderboard.build", "--submissions", submissions]
    command += ["--out", folder / "site", "--markdown", folder / "LEADERBOARD.md"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_command_writes_a_whole_site_and_the_same_one_again(tmp_path):
    submissions = write_entries(tmp_path / "in", 2, gains=TWO)
    first = run_build(submissions, tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert "show 2 entries in 1 suites" in first.stdout
    site = contents(tmp_path / "site")
    assert sorted(site) == [
        "assets/board.css",
        "assets/board.js",
        "assets/plotly.min.js",
        "claims.html",
        "data/entry-group-00.js",
        "data/entry-group-01.js",
        "entry-group-00.html",
        "entry-group-01.html",
        "index.html",
    ]
    table = (tmp_path / "LEADERBOARD.md").read_text()
    assert "4 filter results from 2 entries: 2 shown to help, 2 shown to harm." in table
    (submissions / "group-01.json").unlink()
    assert run_build(submissions, tmp_path).returncode == 0
    fewer = contents(tmp_path / "site")
    assert "entry-group-01.html" not in fewer
    assert fewer["entry-group-00.html"] == site["entry-group-00.html"]  # whoever else is on the board
    assert fewer["data/entry-group-00.js"] == site["data/entry-group-00.js"]
    write_entries(submissions, 2, gains=TWO)
    assert run_build(submissions, tmp_path).returncode == 0
    assert contents(tmp_path / "site") == site
    assert (tmp_path / "LEADERBOARD.md").read_text() == table
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_damaged_entry_leaves_the_earlier_site_alone(tmp_path):
    submissions = write_entries(tmp_path / "in", 1, gains=TWO)
    run_build(submissions, tmp_path)
    before = contents(tmp_path / "site")
    document = make_document(1, gains=TWO)
    write_document(submissions / "edited.json", document | {"name": "Somebody else"})
    refused = run_build(submissions, tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "edited.json" in refused.stderr
    assert contents(tmp_path / "site") == before


def test_many_entries_are_shared_among_processes(tmp_path, monkeypatch):
    submissions = write_entries(tmp_path / "in", 3, gains=TWO, seeds=[0, 1])
    alone = read_summaries(submissions)
    monkeypatch.setattr(leaderboard.build, "SHARE", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    together = read_summaries(submissions)
    assert [summary.entry.key for summary in together] == ["group-00", "group-01", "group-02"]
    assert [repr(summary.rows) for summary in together] == [repr(summary.rows) for summary in alone]
    (submissions / "group-01.json").write_text("{")
    with pytest.raises(UsageError, match=r"group-01\.json is not JSON"):
        read_summaries(submissions)
    with pytest.raises(UsageError, match="is no folder"):
        read_summaries(tmp_path / "nowhere")


def test_no_foreign_folder_is_replaced(tmp_path):
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds something else"):
        build([], out=precious, markdown=tmp_path / "L.md")
    (tmp_path / "link").symlink_to(precious)
    with pytest.raises(UsageError, match="is no folder"):
        build([], out=tmp_path / "link", markdown=tmp_path / "L.md")
    assert (precious / "thesis.txt").read_text() == "years of work"
    assert not (tmp_path / "L.md").exists()


def test_an_empty_board_says_so(tmp_path):
    assert build([], out=tmp_path / "site", markdown=tmp_path / "L.md") == ()
    assert "No entry yet" in (tmp_path / "site" / "index.html").read_text()
    assert "No entry yet" in (tmp_path / "L.md").read_text()


def test_building_needs_nothing_that_trains():
    code = (
        "import sys, leaderboard.build\n"
        "heavy = {'torch', 'gymnasium', 'plotly', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_without_the_extra_a_sentence_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UsageError, match=r"\.\[board\]"):
        build([], out=tmp_path / "site", markdown=tmp_path / "L.md")
    assert list(tmp_path.iterdir()) == []


def as_another(summary: EntrySummary, key: str) -> EntrySummary:
    """The same numbers under another key: computing fifty entries would only take longer."""
    entry = replace(summary.entry, key=key)
    return EntrySummary(entry, summary.comparison, tuple(replace(row, key=key) for row in summary.rows))


def test_fifty_entries_of_all_filters_stay_under_8_mib():
    summary = summarise(make_entry(gains=GAINS))
    board = rankings(as_another(summary, f"group-{number:02d}") for number in range(50))
    sizes = {name: len(content.encode()) for name, content in site_files(board)}
    assert len(board[0].rows) == 600
    plotly = sizes.pop("assets/plotly.min.js")
    assert plotly > 1_000_000
    assert sum(sizes.values()) < 8 * 2**20


def test_the_figures_start_with_the_best_rows_of_different_filters():
    entries = [summarise(make_entry(f"group-{seed}", seed, gains={"iif": 0.4, "dtv": 0.1})) for seed in range(3)]
    (ranking,) = board = rankings(entries)
    index = dict(site_files(board))["index.html"]
    first = {spec: next(row.row_id for row in ranking.rows if row.spec == spec) for spec in ("iif", "dtv")}
    ticked = re.findall(r'value="([^"]*)" checked', index)
    assert ticked == [first["iif"], first["dtv"]]


def test_a_page_shows_what_is_needed_to_judge_and_repeat_the_entry():
    source = 'class Mine:\n    """<b>&amp;</b>"""\n'
    document = make_document(3, gains={"pkg.mod:Mine": 0.3}, command="python -m harness.run --filter 'pkg.mod:Mine'")
    document["filters"]["pkg.mod:Mine"]["source"] = source
    document["digest"] = digest_of(document)
    write = dict(site_files(rankings([summarise(entry_of(document, "mine"))])))
    page = write["entry-mine.html"]
    for text in (
        "python -m harness.run --filter &#39;pkg.mod:Mine&#39;",
        "python -m leaderboard.rerun leaderboard/submissions/mine.json --cells 1",
        "0123456789abcdef",
        "Some CPU",
        document["digest"],
        "&lt;b&gt;&amp;amp;&lt;/b&gt;",
        "fraction = 0.125",
        'href="https://example.org/paper"',
        "self-reported",
    ):
        assert text in page
    assert "&amp;nbsp;" not in page


def test_markdown_stays_a_table_whatever_it_holds():
    nasty = "a|b\n| c | [x](javascript:alert(1)) <script>*_`\\| ![i](http://x) https://x www.x.y a@b.c \u202eevil &lt;"
    entry = replace(make_entry(gains={"iif": 0.3}), name=nasty, authors=(nasty, nasty))
    text = leaderboard_markdown(rankings([summarise(entry)]))
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert not re.search("<(a|script|img|em|strong)", html.partition("How to read it")[0].partition("<table>")[2])
    cells = [unescape(cell) for cell in re.findall("<td[^>]*>(.*?)</td>", html)]
    assert len(cells) == len(re.findall("<th[ >]", html))
    shown = printable(nasty)
    assert cells[2] == f"{shown} ({shown}, {shown})"
    assert "\u202e" not in text
    raw = next(line for line in text.splitlines() if line.startswith("| 1 |"))
    assert not re.search(r"https?:|[^\\]@|www\.", raw)  # these become links on GitHub without any brackets


def test_numbers_are_written_for_people():
    assert signed(-0.1234) == "−0.123"
    assert signed(-0.0001) == "+0.000"
    assert (number(None), number(float("nan"))) == ("–", "–")
    assert limits(Interval(0.1, -0.05, 0.25)) == "[−0.050, +0.250]"
    assert limits(Interval(0.1, float("nan"), float("nan"))) == "–"
    assert (p_value(0.0234), p_value(1e-5), p_value(None)) == ("0.0234", "1.0e−5", "–")
    assert saving(Saving(0.25, 0, 10)) == "+25"
    assert saving(Saving(-0.2, 3, 10)) == "≤ −20"
    assert markdown("iif:fraction=0.25") == "iif:fraction=0.25"
    assert markdown(":tada: x:/y") == r"\:tada: x\:/y"
    assert printable("a\u202eb\x00\n c") == "a�b� c"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "//evil.example",
        "/etc/passwd",
        "http:evil",
        "https://",
        "https://a b",
        "https://a\u202eb",
        "http://[",
        "",
        None,
    ],
)
def test_only_web_addresses_become_links(url):
    assert safe_url(url) is None


def test_web_addresses_stay():
    assert safe_url("https://example.org/a?b=c#d") == "https://example.org/a?b=c#d"
    assert safe_url("http://example.org") == "http://example.org"


def test_json_in_a_script_can_not_end_it():
    value = {"name": "</script><!--<script>&\u2028\u2029\"'\\"}
    text = script_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))
