"""`python -m leaderboard.validate`: a good submission passes, a malformed one fails the clause that it breaks."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

from filters.errors import run_command
from harness.tasks.catalogue import SUITES
from leaderboard.board.rows import is_newer
from leaderboard.entries.submission import Json, digest_of
from leaderboard.validate import BEFORE, CLAUSES, examine, main, read_accepted
from tests.leaderboard.conftest import ROOT, environment
from tests.leaderboard.entries.mutations import GRID, cell


@pytest.fixture
def good(smoke_submission: Path) -> Json:
    document: Json = json.loads(smoke_submission.read_text())
    return document


def write(path: Path, document: Json) -> Path:
    path.write_text(json.dumps(document | {"digest": digest_of(document)}))
    return path


def test_every_malformed_submission_is_refused_by_a_named_clause(smoke_submission: Path, tmp_path: Path) -> None:
    """None crashes, hangs, writes, imports or runs anything: an audit hook watches."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.leaderboard.entries.campaign", str(smoke_submission)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["breaches"] == []
    assert outcome["noticed"] == 2, "the audit hook sees nothing"
    assert len(outcome["results"]) >= 200
    assert {clause for _, clause, _, _ in outcome["results"]} == {*BEFORE, *CLAUSES} - {"duplicate"}
    wrong = [(name, clause, failed) for name, clause, failed, _ in outcome["results"] if clause not in failed]
    assert not wrong
    silent = [name for name, clause, _, printed in outcome["results"] if f"FAILED  {clause}\n          " not in printed]
    assert not silent
    assert list(tmp_path.iterdir()) == []


def test_all_failures_are_told_at_once(good: Json, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good["name"] = "<b>"
    cell(good)["returns"][1][0] = 3
    cell(good, seed=4)["kept"][0] = 0.1234567
    good["tasks"][GRID]["references"]["solved"] = 0.5
    bad = write(tmp_path / "bad.json", good)
    assert run_command(lambda: main([str(bad), "--submissions", str(tmp_path / "none")])) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{bad}: NOT SOUND"
    assert [line.split()[1] for line in printed if "FAILED" in line] == [
        "identity",
        "settings",
        "returns",
        "kept",
    ]
    assert f"          iif on {GRID} with seed 2: a return of 3 can't be; they lie in [0, 1]" in printed
    assert len([line for line in printed if line.startswith("  ok")]) == len(CLAUSES) + len(BEFORE) - 5
    assert printed[-1] == "  –       duplicate: not tried, because the shape fails"


def test_a_damaged_field_leaves_the_clauses_of_others_their_say(good: Json, tmp_path: Path) -> None:
    good["provenance"]["threads"] = "many"
    good["tasks"][GRID]["steps"] = [1, 2]
    findings = examine(json.dumps(good).encode(), tmp_path / "x.json", accepted=[])
    assert findings["schema"] == ["provenance.threads has to be a whole number, got 'many'"]
    assert findings["checkpoints"]
    assert findings["harness"] is None
    assert findings["duplicate"] is None
    assert findings["runs"] == []


def test_duplicates_of_an_accepted_entry(good: Json, tmp_path: Path) -> None:
    accepted = tmp_path / "accepted"
    accepted.mkdir()
    first = write(accepted / "first.json", good)
    known = read_accepted(accepted)

    def why(document: Json, name: str) -> list[str] | None:
        raw = json.dumps(document | {"digest": digest_of(document)}).encode()
        findings = examine(raw, tmp_path / name, accepted=known)
        assert all(messages == [] for clause, messages in findings.items() if clause != "duplicate"), findings
        return findings["duplicate"]

    assert why(good, "again.json") == ["it is the accepted entry first again"]
    renamed = copy.deepcopy(good) | {"name": "Something else", "authors": ["B"]}
    assert why(renamed, "again.json") == ["all of its filters have exactly the returns of the accepted entry first"]
    assert why(renamed, "first.json") is not None
    assert "an accepted entry is called first; choose another name for the file" in (why(renamed, "first.json") or [])
    cell(renamed)["lengths"][0][0] += 1
    assert why(renamed, "again.json") == []
    assert main([str(first), "--submissions", str(accepted)]) == 0, "an entry is no duplicate of itself"
    second = write(tmp_path / "second.json", good)
    assert main([str(first), str(second), "--submissions", str(tmp_path / "empty")]) == 1


def test_somebody_else_s_returns_under_another_filter(good: Json, tmp_path: Path) -> None:
    accepted = tmp_path / "accepted"
    accepted.mkdir()
    write(accepted / "first.json", good)
    stolen = json.loads(json.dumps(good).replace('"iif"', '"random:fraction=0.5"'))
    stolen["filters"]["iif"] = good["filters"]["iif"]
    stolen["cells"] += [cell for cell in json.loads(json.dumps(good))["cells"] if cell["filter"] == "iif"]
    for own in stolen["cells"]:
        if own["filter"] == "iif":
            own["lengths"][0][0] += 1
    stolen["filters"]["random:fraction=0.5"]["class"] = "filters.uniform:RandomFilter"
    raw = json.dumps(stolen | {"digest": digest_of(stolen)}).encode()
    findings = examine(raw, tmp_path / "x.json", accepted=read_accepted(accepted))
    assert findings["duplicate"] == [
        "random:fraction=0.5 has exactly the returns of filters.iif:IIF in the accepted entry first"
    ]


def test_exit_codes(smoke_submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: main([str(smoke_submission), "--submissions", str(tmp_path)])) == 0
    assert run_command(lambda: main([str(tmp_path / "absent.json")])) == 2
    assert "absent.json can't be read" in capsys.readouterr().err
    (tmp_path / "broken.json").write_text("{")
    assert run_command(lambda: main([str(smoke_submission), "--submissions", str(tmp_path)])) == 2
    assert "the accepted entry" in capsys.readouterr().err


def test_accepted_entries_are_sound() -> None:
    """Whatever lies in leaderboard/submissions has passed; its tasks may have got newer versions since."""
    folder = ROOT / "leaderboard" / "submissions"
    paths = list(folder.glob("*.json"))
    assert paths
    for path in paths:
        findings = examine(path.read_bytes(), path, accepted=read_accepted(folder, but=[path]))
        document = json.loads(path.read_bytes())
        aged = is_newer(SUITES[document["suite"]], tuple(document["tasks"]))
        assert {name for name, problems in findings.items() if problems} == ({"suite"} if aged else set()), path
