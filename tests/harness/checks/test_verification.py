"""Verifying: what is edited, cut short, mixed up or stale is found and named; what is right is not."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from filters.errors import UsageError
from harness import verify
from harness.cells import cell as cell_module
from harness.cells.cell import Cell, describe, is_complete, take_cell
from harness.checks import verification
from harness.tasks import catalogue as tasks
from harness.tasks.catalogue import TASKS, find_task
from leaderboard.report import print_report
from leaderboard.runs.store import read_cell, write_json


def edit_return(path: Path) -> None:
    lines = (path / "evals.jsonl").read_text().splitlines()
    line = json.loads(lines[0])
    line["returns"][0] += 1.0
    (path / "evals.jsonl").write_text("\n".join([json.dumps(line), *lines[1:]]) + "\n")


def edit_time(path: Path) -> None:
    text = (path / "run.json").read_text()
    write_json(path / "run.json", json.loads(text) | {"compiled": True})


def change(path: Path, **values: object) -> None:
    write_json(path / "config.json", json.loads((path / "config.json").read_text()) | values)


def cut_line(path: Path) -> None:
    lines = (path / "rounds.jsonl").read_text().splitlines()
    (path / "rounds.jsonl").write_text(lines[0] + "\n")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "an edited return": (edit_return, "evals.jsonl is not what the run wrote"),
    "an edited total": (edit_time, "run.json is not what the run wrote"),
    "an edited setting": (lambda path: change(path, apply="mask"), "config.json is not what the run wrote"),
    "a line cut off": (cut_line, "rounds.jsonl is not what the run wrote"),
    "a byte cut off": (lambda path: (path / "evals.jsonl").write_bytes(b'{"ro'), "evals.jsonl is truncated"),
    "an empty file": (lambda path: (path / "run.json").write_bytes(b""), "run.json is truncated"),
    "a missing file": (lambda path: (path / "rounds.jsonl").unlink(), "rounds.jsonl is missing"),
    "a renamed seed": (lambda path: path.rename(path.with_name("seed-7")), "belongs in another folder"),
    "a renamed filter": (lambda path: path.parent.rename(path.parents[1] / "none"), "belongs in another folder"),
    "a leftover": (lambda path: (path / ".run.json.12.tmp").touch(), ".run.json.12.tmp was left over"),
    "a link": (lambda path: (path / "notes").symlink_to("/etc/passwd"), "notes is a link"),
}


def test_a_good_cell_is_good(real_runs: Path, real_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([str(real_runs), "--strict"]) == 0
    assert capsys.readouterr().out == "1 cells (1 complete): 0 bad, 0 notes\n"
    assert verify.main([str(real_path)]) == 0


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_and_named(real_runs: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    act, sentence = DAMAGE[damage]
    act(next(real_runs.rglob("seed-0")))
    assert verify.main([str(real_runs)]) == 1
    bad, summary = capsys.readouterr().out.splitlines()
    assert bad.startswith(f"bad: {real_runs}/")
    assert sentence in bad
    assert summary.endswith("1 bad, 0 notes")


@pytest.mark.parametrize("damage", ["an edited return", "an edited total", "an edited setting", "a line cut off"])
def test_what_was_edited_is_never_reported(real_runs: Path, real_path: Path, damage: str) -> None:
    DAMAGE[damage][0](real_path)
    with pytest.raises(UsageError, match="is not what the run wrote"):
        print_report(real_runs)


def test_a_task_that_is_another_today_makes_its_cells_stale(
    real_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = find_task("smoke-FrozenLake")
    other = replace(task, args=replace(task.args, gamma=0.5), solved=2.0)
    monkeypatch.setitem(tasks.TASKS, task.id, other)
    assert verify.main([str(real_runs)]) == 1
    assert "is stale: args.gamma, references.solved differ today" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"eval_episodes": 2, "eval_every": 1, "apply": "mask"},
        {"checkpoint_every": 3, "corrupt": "reward-flip:0.2"},
        {"corrupt": "advantage-noise:1e-05"},
    ],
)
def test_a_variation_is_rebuilt_from_its_id(tmp_path: Path, changes: dict[str, Any]) -> None:
    cell = Cell(find_task("smoke-FrozenLake").varied(env_backend="gymnasium", **changes), "iif", 3, tmp_path)
    config = describe(cell)
    assert describe(verification.rebuild(cell.path, config)) == config


@pytest.mark.parametrize("change", ["xyz", "", "eval-1", "checkpoint-x"])
def test_an_unknown_variation_is_named(change: str) -> None:
    with pytest.raises(UsageError, match=f"unknown variation '{change}'"):
        verification.varied(f"FrozenLake/v1@{change}", {})


def test_other_code_and_other_versions_are_notes(
    real_runs: Path, real_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    today = cell_module.project_sources
    monkeypatch.setattr(
        cell_module, "project_sources", lambda agent, filter: today(agent, filter) | {"algos.ppo": "0" * 16}
    )
    assert verify.main([str(real_runs)]) == 0
    assert "made by another version of algos.ppo" in capsys.readouterr().out
    assert verify.main([str(real_runs), "--strict"]) == 1


def test_mixed_package_versions_are_a_note(real_runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by = cell_module.provenance
    monkeypatch.setattr(
        cell_module,
        "provenance",
        lambda device, jobs: made_by(device, jobs=jobs) | {"packages": {"torch": "1.0"}},
    )
    take_cell(Cell(find_task("smoke-FrozenLake"), "none", 0, real_runs), lambda done, rounds: None)
    found = verification.verify(real_runs)
    assert found.problems == ()
    (note,) = found.notes
    assert note.startswith("smoke-FrozenLake/v1: runs were made with different torch (1.0, ")


FILTER = """
from dataclasses import dataclass
from filters.api import Filter, keep_all
from helper_of_mine import STRENGTH

@dataclass(frozen=True, kw_only=True)
class Mine(Filter):
    def select(self, rollout, objective):
        return keep_all(rollout)
"""


def forget(*modules: str) -> None:
    """As if a new process looked at them."""
    from harness.cells import sources

    for name in modules:
        sys.modules.pop(name, None)
    sources.scan.cache_clear()
    sources.source_file.cache_clear()


def test_the_source_of_a_filter_from_outside_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("filter_of_mine", "helper_of_mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "filter_of_mine.py").write_text(FILTER)
    (tmp_path / "helper_of_mine.py").write_text("STRENGTH = 1\n")
    forget(*names)
    out, spec = tmp_path / "runs", "random-matched:of=filter_of_mine:Mine"
    cell = Cell(find_task("smoke-FrozenLake"), spec, 0, out)
    assert sorted(describe(cell)["filter_sources"]) == ["filter_of_mine", "helper_of_mine"]
    assert take_cell(cell, lambda done, rounds: None).error is None
    assert is_complete(cell)

    (tmp_path / "helper_of_mine.py").write_text("STRENGTH = 2\n")
    assert is_complete(cell), "this process still runs what it imported"
    forget(*names)
    with pytest.raises(UsageError, match=r"other settings \(filter_sources differ\)"):
        is_complete(cell)

    assert verify.main([str(out)]) == 0  # nothing that the folder names is imported unasked
    assert "filter_of_mine:Mine was not compared; say --trust" in capsys.readouterr().out
    assert verify.main([str(out), "--trust", "filter_of_mine:Mine"]) == 1
    assert "is stale: filter_sources.helper_of_mine differ today" in capsys.readouterr().out
    forget(*names)


def test_runs_older_than_digests_stay_readable(real_runs: Path, real_path: Path) -> None:
    run = json.loads((real_path / "run.json").read_text())
    write_json(real_path / "run.json", {key: run[key] for key in run if key not in ("files", "digest")})
    assert len(read_cell(real_path).steps) == 2
    found = verification.verify(real_runs)
    assert found.problems == ()
    assert "older than digests" in found.notes[0]


def test_every_task_describes_the_rounds_that_it_makes() -> None:
    for task in TASKS.values():
        config = describe(Cell(task, "none", 0, Path("out")))
        assert verification.expected_rounds(config) == task.args.rounds


def test_a_folder_without_runs_is_bad_input(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match=r"holds no runs|is no folder"):
            verification.verify(folder)
