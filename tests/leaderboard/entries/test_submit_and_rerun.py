"""From runs to an accepted entry, by the commands: submit, validate, rerun."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from filters.errors import UsageError, run_command
from filters.registry import text_hash
from leaderboard.entries.located import defines_filter, source_without_import
from leaderboard.entries.submission import Entry, Json, digest_of, read_entry
from leaderboard.rerun import draw, verdict
from leaderboard.runs.jsonfile import digest
from leaderboard.runs.store import HASHED, cell_dir, find_cells, seal
from leaderboard.submit import build, collect, slug
from tests.leaderboard.conftest import environment
from tests.leaderboard.entries.mutations import GRID, LAKE, rename_filter

Here = Callable[..., tuple[int, str, str]]
MINE = """\
\"\"\"A filter from outside.\"\"\"

from dataclasses import dataclass

from filters.iif import IIF


@dataclass(frozen=True, kw_only=True)
class Mine(IIF):
    pass
"""


def command(module: str, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"leaderboard.{module}", *map(str, words)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """The same in this process, which has paid for its imports: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(module: str, *words: object) -> tuple[int, str, str]:
        main = importlib.import_module(f"leaderboard.{module}").main
        code = run_command(lambda: main([str(word) for word in words]))
        return code, *capfd.readouterr()

    return run


def seed_that_draws(entry: Entry, task: str, spec: str) -> int:
    return next(seed for seed in range(1000) if [(c.task, c.spec) for c in draw(entry, 1, seed=seed)] == [(task, spec)])


def test_submit_validate_rerun(smoke_runs: Path, tmp_path: Path, here: Here) -> None:
    words = (
        "--suite",
        "smoke",
        "--name",
        "Émile's IIF & co.",
        "--authors",
        "Émile",
        "B. B.",
        "--url",
        "https://example.org/x",
    )
    done = command("submit", smoke_runs, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "mile-s-iif-co-smoke.json"
    assert f"wrote {file.name}: 20 runs" in done.stdout
    assert list(tmp_path.iterdir()) == [file]
    assert command("validate", file.name, cwd=tmp_path).returncode == 0
    before = read_entry(file)
    done = command("rerun", file.name, "--cells", 2, "--seed", 1, "--accept", "--out", "again", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "drawn with --seed 1" in done.stdout
    assert done.stdout.count("\nidentical ") == 2
    after = read_entry(file)
    assert (before.status, after.status) == ("self-reported", "re-run")
    assert after.digest == before.digest
    assert after.rerun is not None
    assert after.rerun["verdict"] == "identical"
    drawn = draw(before, 2, seed=1)
    assert [(c["task"], c["filter"], c["seed"]) for c in after.rerun["cells"]] == [
        (c.task, c.spec, c.seed) for c in drawn
    ]
    assert sorted(find_cells(tmp_path / "again")) == sorted(
        cell_dir(tmp_path / "again", c.task, c.spec, c.seed) for c in drawn
    )
    code, printed, _ = here("validate", file.name)
    assert code == 0, printed
    exists = f"error: {file.name} exists already; choose another --out or delete it\n"
    assert here("submit", smoke_runs, *words) == (2, "", exists)
    assert here("rerun", file.name, "--out", ".") == (2, "", "error: . is not empty; choose another --out\n")


def test_a_forged_number_comes_out_different(smoke_submission: Path, tmp_path: Path, here: Here) -> None:
    document: Json = json.loads(smoke_submission.read_text())
    for cell in document["cells"]:
        if (cell["task"], cell["filter"]) == (GRID, "iif"):
            cell["returns"] = [[0.9, 0.91, 0.92, 0.93], [0.93, 0.94, 0.95, 0.96]]
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(document | {"digest": digest_of(document)}))
    assert here("validate", file)[0] == 0, "only running it again can tell"
    seed = seed_that_draws(read_entry(file), GRID, "iif")
    content = file.read_bytes()
    code, printed, errors = here("rerun", file, "--seed", seed, "--accept")
    assert code == 1, printed + errors
    assert "\ndifferent " in printed
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_not_sound_is_not_run(smoke_submission: Path, tmp_path: Path, here: Here) -> None:
    file = tmp_path / "edited.json"
    file.write_text(smoke_submission.read_text().replace("IIF, smoke", "Other"))
    code, printed, errors = here("rerun", file)
    assert (code, printed) == (2, "")
    assert errors.startswith(f"error: {file} is not sound (digest)")


@pytest.fixture
def outside(smoke_submission: Path, tmp_path: Path) -> Path:
    """A submission whose filter is a class of a module `mine`, with its source."""
    document: Json = json.loads(smoke_submission.read_text())
    spec = "mine:Mine"
    rename_filter("iif", spec)(document)
    document["filters"][spec] |= {"class": spec, "source": MINE, "sha256": text_hash(MINE)}
    document["command"] = document["command"].replace("iif", spec)
    file = tmp_path / "outside.json"
    file.write_text(json.dumps(document | {"digest": digest_of(document)}))
    return file


def test_included_source_is_never_run(
    outside: Path, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("validate", outside)[0] == 0
    words = ("rerun", outside, "--seed", seed_that_draws(read_entry(outside), GRID, "mine:Mine"))
    code, _, errors = here(*words)
    assert code == 2
    assert "is not installed here, and its included source is never run; install it" in errors
    installed = tmp_path / "installed"
    installed.mkdir()
    monkeypatch.syspath_prepend(installed)
    (installed / "mine.py").write_text(MINE + "raise SystemExit('imported')\n")
    code, _, errors = here(*words)
    assert code == 2
    assert "is not the one that the submission was made with" in errors
    assert "mine" not in sys.modules
    (installed / "mine.py").write_text(MINE)
    code, printed, errors = here(*words)
    assert code == 0, printed + errors
    assert "mine" not in sys.modules
    assert "\nidentical " in printed


def test_a_module_is_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "leaf.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    assert source_without_import("outer.inner.leaf") == MINE
    assert source_without_import("outer.inner.absent") is None
    assert source_without_import("outer.inner.leaf.deeper") is None
    assert source_without_import("sys") is None
    assert "outer" not in sys.modules
    assert defines_filter(MINE, "Mine")
    assert not defines_filter(MINE, "Other")
    assert not defines_filter("import webbrowser\nclass Mine: ...", "Mine")
    assert not defines_filter("class Mine(", "Mine")


def test_the_verdict_s_rule(smoke_submission: Path) -> None:
    """Stated finals 0.2 to 0.6: mean 0.4, sd 0.1581. With 3 sd and 0.05 of the range 0.2015 to 0.95 on top: ±0.5117."""
    from dataclasses import replace

    entry = read_entry(smoke_submission)
    other = entry.provenance | {"python": "3.99.0"}

    def stated(value: float, seed: int) -> object:
        source = next(c for c in entry.cells if (c.task, c.spec, c.seed) == (GRID, "iif", seed))
        return replace(source, returns=(np.full(4, value), np.full(4, value)))

    cells = tuple(stated(0.2 + 0.1 * seed, seed) for seed in range(5))
    entry = replace(entry, cells=cells)
    theirs = cells[0]

    def of(value: float, provenance: Json) -> str:
        flat = (np.full(4, value), np.full(4, value))
        return verdict(replace(theirs, returns=flat, provenance=provenance), theirs, entry)

    assert of(0.2, other) == "identical"
    assert of(1.11, other) == "consistent"
    assert of(1.12, other) == "different"
    assert of(-0.31, other) == "consistent"
    assert of(-0.32, other) == "different"
    clean = entry.provenance | {"code": {"commit": "0" * 40, "dirty": False}}
    entry = replace(entry, provenance=clean)
    theirs = replace(theirs, filter_source=entry.filters["iif"].sha256)
    assert of(0.3, clean) == "different", "under the same circumstances it has to be identical"
    assert of(0.3, clean | {"jobs": 99, "threads": 2}) == "consistent"


@pytest.fixture
def runs(smoke_runs: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(smoke_runs, tmp_path / "runs"))


def test_submit_says_what_is_missing(runs: Path) -> None:
    os.remove(cell_dir(runs, GRID, "iif", 3) / "run.json")
    shutil.rmtree(cell_dir(runs, LAKE, "none", 0))
    with pytest.raises(
        UsageError, match=r"lacks 2 of the 20 complete runs.*none on smoke-FrozenLake/v1 with seed 0, iif on "
    ):
        collect(runs, suite="smoke")
    with pytest.raises(UsageError, match="unknown suite 'smok'; did you mean 'smoke'"):
        collect(runs, suite="smok")
    with pytest.raises(UsageError, match="no complete run of a filter on quick"):
        collect(runs, suite="quick")
    with pytest.raises(UsageError, match="lacks 11 of the 20"):
        collect(runs, suite="smoke", filters=["random"])
    with pytest.raises(UsageError, match="is no folder"):
        collect(runs / "absent", suite="smoke")


def test_submit_refuses_runs_that_are_not_alike(runs: Path) -> None:
    def build_after(change: str, to: str, file: str) -> None:
        folder = cell_dir(runs, GRID, "iif", 3)
        before = {name: (folder / name).read_text() for name in {file, "run.json"}}
        assert change in before[file]
        (folder / file).write_text(before[file].replace(change, to))
        run = json.loads((folder / "run.json").read_text())
        run["files"] = {name: digest(folder / name) for name in HASHED}
        (folder / "run.json").write_text(json.dumps(run | {"digest": seal(run)}))
        try:
            build(collect(runs, suite="smoke"), suite="smoke", name="x", authors=["x"], url=None)
        finally:
            for name, text in before.items():
                (folder / name).write_text(text)

    with pytest.raises(UsageError, match="different args"):
        build_after('"learning_rate": 0.005', '"learning_rate": 0.5', "config.json")
    with pytest.raises(UsageError, match="different filter_fields"):
        build_after('"fraction": 0.125', '"fraction": 0.5', "config.json")
    with pytest.raises(UsageError, match="under different jobs"):
        build_after('"jobs": 2', '"jobs": 3', "run.json")
    with pytest.raises(UsageError, match="runs of the filter iif were made with different versions of its source"):
        build_after('"filter_source": "', '"filter_source": "0', "run.json")
    shutil.copytree(cell_dir(runs, GRID, "iif", 3), runs / "more" / cell_dir(Path(), GRID, "iif", 3))
    with pytest.raises(UsageError, match="are the same run"):
        collect(runs, suite="smoke")


def test_submit_refuses_what_would_not_be_sound(smoke_runs: Path, tmp_path: Path, here: Here) -> None:
    words = ("submit", smoke_runs, "--suite", "smoke", "--authors", "A")
    for more, what in {
        ("--name", "<b>x"): "(identity): name has to be printable text without < and >",
        ("--name", "x", "--url", "javascript:alert(1)"): "(identity): url has to be an http(s) URL",
        ("--name", "x\udcff"): "(file): it is not UTF-8",
        ("--name", "x", "--out", "Some File.json"): "lower-case letters, digits and hyphens",
        ("--name", "x", "--out", "absent/x.json"): "the folder of absent/x.json does not exist",
    }.items():
        code, printed, errors = here(*words, *more)
        assert (code, printed) == (2, "")
        assert what in errors
        assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_name_becomes_a_key() -> None:
    assert slug("IIF of Our Group!") == "iif-of-our-group"
    assert slug("日本") == "submission"
