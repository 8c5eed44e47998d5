"""The file of a submission: strict JSON, a documented schema, numbers that come back as they were."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from filters.errors import UsageError
from harness.tasks.catalogue import SUITES
from leaderboard import submit
from leaderboard.entries import schema_v2
from leaderboard.entries.clauses_runs import FOUND
from leaderboard.entries.schema import Place
from leaderboard.entries.submission import (
    NotReadable,
    digest_of,
    parse_bytes,
    read_entries,
    read_entry,
    shape_problems,
    to_text,
)
from leaderboard.runs.store import find_cells, read_cell
from leaderboard.schema_page import page
from leaderboard.statistics.comparison import compare
from leaderboard.submit import build, collect
from leaderboard.validate import examine
from tests.leaderboard.conftest import ROOT

SAMPLES = Path(__file__).parent / "samples"
SAMPLE_RETURNS = {
    "smoke-v1": [[0, 0, 0.7929999999999999, 0], [0, 0, 0.739, 0.4059999999999999]],
    "smoke-v2": [[0, 0, 0.739, 0.4059999999999999]],
}
"""of the baseline on smoke-MiniGrid/v1 with seed 2"""


def test_an_entry_holds_the_runs_it_was_made_from(smoke_runs: Path, smoke_submission: Path) -> None:
    entry = read_entry(smoke_submission)
    runs = {(run.task, run.spec, run.seed): run for run in map(read_cell, find_cells(smoke_runs))}
    assert (entry.key, entry.name, entry.authors, entry.url) == ("smoke-iif", "IIF, smoke", ("A. Author",), None)
    assert (entry.suite, entry.status, entry.rerun) == ("smoke", "self-reported", None)
    assert entry.command == "python -m harness.run --suite smoke --seeds 5 --filter iif"
    assert len(entry.cells) == len(runs) == 20
    for cell in entry.cells:
        run = runs[cell.task, cell.spec, cell.seed]
        assert [episodes.tolist() for episodes in cell.returns] == [episodes.tolist() for episodes in run.returns]
        assert [lengths.tolist() for lengths in cell.lengths] == [lengths.tolist() for lengths in run.lengths]
        assert cell.steps.tolist() == run.steps.tolist()
        assert cell.optimizer_steps.tolist() == run.optimizer_steps.tolist()
        np.testing.assert_allclose(cell.kept, run.kept, rtol=0, atol=5e-7)
        np.testing.assert_allclose(cell.seconds, run.seconds, rtol=0, atol=6e-4)
        assert cell.phase_seconds == pytest.approx(run.phase_seconds, abs=6e-4)
        assert cell.config == run.config
        assert cell.references == run.references
        assert cell.provenance == entry.provenance == run.provenance
    iif = entry.filters["iif"]
    assert (iif.class_path, iif.source, iif.sha256) == (
        "filters.iif:IIF",
        None,
        runs["smoke-MiniGrid/v1", "iif", 0].filter_source,
    )
    assert {task: fields["fraction"] for task, fields in iif.fields.items()} == {
        "smoke-FrozenLake/v1": 0.5,
        "smoke-MiniGrid/v1": 0.125,
    }
    whole = compare(entry.cells, ())
    assert whole.whole
    assert [test.spec for test in whole.joint] == ["iif"]


def test_a_summed_up_entry_says_the_same(smoke_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves, last episodes and so every number of the comparison are those of the runs; only the rest goes."""
    runs = collect(smoke_runs, suite="smoke")
    words: dict[str, Any] = {"suite": "smoke", "name": "x", "authors": ["x"], "url": None}
    file = tmp_path / "small.json"
    assert all(cell["summary"] is None for cell in build(runs, **words)["cells"])
    monkeypatch.setattr(submit, "MANY", 10)
    file.write_text(to_text(build(runs, **words)))
    assert not any(examine(file.read_bytes(), file, accepted=()).values())
    entry = read_entry(file)
    for ours, theirs in zip(entry.cells, runs, strict=True):
        np.testing.assert_allclose(ours.curve, theirs.curve, rtol=1e-9)
        assert ours.returns[-1].tolist() == theirs.returns[-1].tolist()
    ours, theirs = compare(entry.cells, ()).joint[0], compare(runs, ()).joint[0]
    assert ours.test == theirs.test


@pytest.mark.parametrize(
    ("change", "clause", "what"),
    [
        (lambda cell: cell["summary"]["means"].append(0), "checkpoints", "summary.means has to have 2 items, got 3"),
        (lambda cell: cell["summary"].update(episodes=5), "checkpoints", "summary.episodes has to be 4, got 5"),
        (lambda cell: cell["summary"]["means"].__setitem__(-1, 0.99), "checkpoints", "but last_returns make"),
        (lambda cell: cell["summary"]["means"].__setitem__(0, 7), "returns", "a return of 7 can't be"),
        (lambda cell: cell["summary"]["last_lengths"].pop(), "checkpoints", "lengths has to have 4 episodes"),
        (lambda cell: cell.update(summary=None), "checkpoints", "either summary, or returns and lengths"),
        (lambda cell: cell.update(returns=[[0.0] * 4] * 2), "checkpoints", "either summary, or returns and lengths"),
    ],
    ids=["too long", "another number", "another last mean", "out of range", "too short", "nothing", "both"],
)
def test_a_summary_that_can_not_be_is_refused(
    smoke_runs: Path, tmp_path: Path, change: Callable[[Any], object], clause: str, what: str
) -> None:
    runs = collect(smoke_runs, suite="smoke")
    document = build(runs, suite="smoke", name="x", authors=["x"], url=None, detail="summary")
    change(document["cells"][-1])
    file = tmp_path / "odd.json"
    file.write_text(to_text(document | {"digest": digest_of(document)}))
    problems = examine(file.read_bytes(), file, accepted=())[clause]
    assert problems is not None
    assert any(what in problem for problem in problems), problems


def test_returns_come_back_exactly(smoke_runs: Path) -> None:
    odd = np.array([0.1, 1 / 3, 1e-300, 5e-324, -0.0, 123456789.123456789, math.pi, 2**53 + 2.0, -7.0])
    run = replace(read_cell(find_cells(smoke_runs)[0]), returns=(odd, odd[::-1]))
    text = to_text(build([run], suite="smoke", name="x", authors=["x"], url=None))
    (cell,) = parse_bytes(text.encode())["cells"]
    assert [list(map(float, episodes)) for episodes in cell["returns"]] == [odd.tolist(), odd[::-1].tolist()]


def test_a_diff_shows_what_changed(smoke_submission: Path) -> None:
    lines = smoke_submission.read_text().splitlines()
    document = parse_bytes(smoke_submission.read_bytes())
    document["cells"][3]["returns"][1][2] = 0.25
    changed = to_text(document).splitlines()
    assert len(lines) == len(changed)
    assert sum(line != other for line, other in zip(lines, changed, strict=True)) == 1
    assert max(map(len, lines)) < 200
    text = smoke_submission.read_text()
    assert str(ROOT) not in text
    assert "/home" not in text


def test_the_digest_covers_the_content_and_nothing_else(smoke_submission: Path) -> None:
    document = parse_bytes(smoke_submission.read_bytes())
    assert digest_of(document) == document["digest"]
    assert digest_of(dict(reversed(document.items()))) == document["digest"]
    assert digest_of(document | {"status": "re-run", "rerun": {}, "digest": ""}) == document["digest"]
    assert digest_of(document | {"name": "x"}) != document["digest"]


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' twice"),
        (b'{"a": [NaN]}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "no finite number"),
        (b'{"a": 12345678901234567890}', "20 digits"),
        (b"[" * 100_000, "nested too deep"),
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b" " * (8 * 2**20 + 1), "larger than 8 MiB"),
    ],
)
def test_json_is_read_strictly(raw: bytes, what: str) -> None:
    with pytest.raises(NotReadable, match=what):
        parse_bytes(raw)


def test_a_damaged_entry_is_one_sentence(smoke_submission: Path, tmp_path: Path) -> None:
    document = json.loads(smoke_submission.read_text())
    cases = {
        "no-json.json": ("{", "is not JSON"),
        "edited.json": (json.dumps(document | {"name": "x"}), "not what its digest was made of"),
        "UPPER.json": (smoke_submission.read_text(), "lower-case"),
        "shape.json": (json.dumps(document | {"cells": 3}), "cells has to be a list, got 3"),
        "future.json": (json.dumps(document | {"schema": "filtergym-submission/3"}), "filtergym-submission/2"),
    }
    for name, (text, what) in cases.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=what):
            read_entry(tmp_path / name)
    runs_of_nobody = document | {"filters": {"none": document["filters"]["none"]}}
    (tmp_path / "orphan.json").write_text(json.dumps(runs_of_nobody | {"digest": digest_of(runs_of_nobody)}))
    with pytest.raises(UsageError, match="lacks 'iif'"):
        read_entry(tmp_path / "orphan.json")


def test_a_folder_of_entries_is_sorted_by_key(smoke_submission: Path, tmp_path: Path) -> None:
    for name in ("b-2", "a", "b"):
        (tmp_path / f"{name}.json").write_text(smoke_submission.read_text())
    assert [entry.key for entry in read_entries(tmp_path)] == ["a", "b", "b-2"]
    with pytest.raises(UsageError, match="is no folder"):
        read_entries(tmp_path / "absent")


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_entries_of_every_schema_stay_readable(sample: Path) -> None:
    """One sample for each schema that was ever accepted; it is never made again."""
    entry = read_entry(sample)
    assert sorted({cell.spec for cell in entry.cells}) == ["iif", "none"]
    assert len(entry.cells) == 20
    first = next(cell for cell in entry.cells if (cell.task, cell.seed) == ("smoke-MiniGrid/v1", 2))
    assert first.spec == "none"
    assert first.steps.tolist() == [256, 512]
    assert [episodes.tolist() for episodes in first.returns] == SAMPLE_RETURNS[sample.stem]
    np.testing.assert_allclose(first.curve, [0.7929999999999999 / 4, (0.739 + 0.4059999999999999) / 4], rtol=1e-9)
    assert compare(entry.cells, ()).whole


def test_there_is_a_sample_of_every_schema() -> None:
    from leaderboard.entries.submission import SCHEMAS

    assert {json.loads(path.read_text())["schema"] for path in SAMPLES.glob("*.json")} == set(SCHEMAS)


@pytest.mark.parametrize("suite", SUITES)
def test_a_submission_of_every_suite_can_name_its_tasks(suite: str) -> None:
    kind, place = schema_v2.task(""), Place()
    assert [problem for task in SUITES[suite] for problem in kind.problems(task, place)] == []
    for wrong in ("FrozenLake", "FrozenLake/v1@", "FrozenLake/v1@corrupt-a-../0", "FrozenLake/v1@X"):
        assert list(kind.problems(wrong, place))


def test_the_page_of_the_schema_is_up_to_date() -> None:
    assert (ROOT / "leaderboard" / "SCHEMA.md").read_text() == page(), (
        "python -m leaderboard.schema_page > leaderboard/SCHEMA.md"
    )
    assert "|  |" not in page(), "a field is not described"


def test_what_the_schema_says_of_garbage() -> None:
    (problem,) = shape_problems([1, 2])
    assert problem.message == "has to hold an object, got a list of 2"
    (problem,) = shape_problems({"schema": ["x"]})
    assert problem.where == "schema"
    found = {problem.where: problem.message for problem in shape_problems({"schema": "filtergym-submission/1", "x": 1})}
    assert found["name"] == "is missing"
    assert found["['x']"] == "is no documented field"


def test_reading_and_writing_submissions_is_light() -> None:
    code = "import sys; from leaderboard import submit, validate, rerun, schema_page\n"
    code += "from leaderboard.entries import submission\nassert not {'torch', 'gymnasium'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_what_was_found_of_corrupted_records_survives_the_file(smoke_submission: Path, tmp_path: Path) -> None:
    document = json.loads(smoke_submission.read_text(encoding="utf-8"))
    for cell in document["cells"]:
        rounds = len(cell["kept"])
        cell["corruption"] = {name: [0.25] * (rounds - 1) + [None] for name in FOUND}
    assert shape_problems(document) == []
    file = tmp_path / "corrupt.json"
    file.write_text(to_text(document | {"digest": digest_of(document)}))
    entry = read_entry(file)
    for cell in entry.cells:
        assert cell.corruption.keys() == set(FOUND)
        assert np.isnan(cell.corruption["auroc"][-1])
    problems = examine(file.read_bytes(), file, accepted=())["checkpoints"]
    assert problems
    assert all("corruption has to have exactly nothing" in problem for problem in problems), "smoke tasks are clean"
