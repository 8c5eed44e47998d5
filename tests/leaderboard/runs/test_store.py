"""Run directories: layout, completeness, and damaged files."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from filters.errors import UsageError
from leaderboard.runs import store
from leaderboard.runs.jsonfile import numbers, wholes
from leaderboard.runs.sharing import Shared

CONFIG = {
    "schema": 1,
    "task": "FrozenLake/v1",
    "filter": "iif",
    "filter_class": "filters.iif:IIF",
    "filter_fields": {"fraction": 0.5},
    "apply": "repack",
    "seed": 3,
    "device": "cpu",
    "agent": "ppo",
    "args": {},
    "references": {"random": 0.01, "solved": 1},
}
EVALS = [
    {"round": 1, "step": 2048, "seconds": 1.5, "returns": [0.0, 1.0], "lengths": [5, 6]},
    {"round": 2, "step": 4096, "seconds": 2.5, "returns": [1, 1, 0.25], "lengths": [6, 6, 6]},
]
ROUNDS = [
    {
        "round": 0,
        "step": 2048,
        "kept": 0.5,
        "optimizer_steps": 30,
        "skipped": False,
        "policy_loss": 0.1,
        "seconds": {"environment": 1.0, "filter": 0.5, "evaluation": 9.0},
    },
    {
        "round": 1,
        "step": 4096,
        "kept": 0,
        "optimizer_steps": 0,
        "skipped": True,
        "policy_loss": None,
        "seconds": {"environment": 1.0, "logging": 7.0},
    },
]


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    path = store.cell_dir(tmp_path, "FrozenLake/v1", "iif", 3)
    path.mkdir(parents=True)
    store.write_json(path / "config.json", CONFIG)
    write_lines(path / "evals.jsonl", EVALS)
    write_lines(path / "rounds.jsonl", ROUNDS)
    store.write_json(path / "run.json", {"schema": 1, "status": "complete", "seconds": {}, "provenance": {}})
    return path


def write_lines(path: Path, lines: list[dict]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_layout():
    out = Path("runs")
    path = store.cell_dir(out, "MiniGrid-Empty-8x8/v3", "iif:fraction=0.25,warmup=5", 0)
    assert path == out / "MiniGrid-Empty-8x8-v3" / "iif:fraction=0.25,warmup=5" / "seed-0"


@pytest.mark.parametrize("spec", ["../../etc", "..", ".", "a/b:path=/tmp/x", "p.m:C:name=ä b%2F"])
def test_no_spec_leaves_its_folder(spec):
    path = store.cell_dir(Path("/runs"), "T/v1", spec, 1)
    assert Path(os.path.normpath(path)) == path
    assert path.parent.parent == Path("/runs/T-v1")


def test_a_complete_cell_reads_into_arrays(cell):
    run = store.read_cell(cell)
    assert (run.task, run.spec, run.seed) == ("FrozenLake/v1", "iif", 3)
    assert run.config == CONFIG
    assert run.steps.dtype == np.int64
    np.testing.assert_array_equal(run.steps, [2048, 4096])
    np.testing.assert_array_equal(run.seconds, [1.5, 2.5])
    np.testing.assert_array_equal(run.curve, [0.5, 0.75])
    np.testing.assert_array_equal(run.returns[1], [1, 1, 0.25])
    np.testing.assert_array_equal(run.kept, [0.5, 0])
    np.testing.assert_array_equal(run.optimizer_steps, [30, 0])
    assert run.skipped_rounds == 1
    assert run.phase_seconds == {"environment": 2.0, "filter": 0.5, "evaluation": 9.0, "logging": 7.0}
    assert run.training_seconds == 2.5
    assert run.references == {"random": 0.01, "solved": 1.0}
    assert [lengths.tolist() for lengths in run.lengths] == [[5, 6], [6, 6, 6]]
    assert (run.provenance, run.filter_source) == ({}, None)


def test_status_follows_the_marker_files(cell):
    assert store.status(cell) == "complete"
    store.write_json(cell / "failure.json", {"schema": 1, "error": "old", "traceback": "", "round": None})
    assert store.status(cell) == "complete"
    (cell / "run.json").unlink()
    assert store.status(cell) == "failed"
    (cell / "failure.json").unlink()
    assert store.status(cell) == "incomplete"
    assert store.status(cell / "nowhere") == "incomplete"
    with pytest.raises(UsageError, match="no complete run"):
        store.read_cell(cell)


def test_cells_are_found_in_the_order_of_their_seeds(cell):
    for seed in (10, 2):
        path = cell.parent / f"seed-{seed}"
        path.mkdir()
        (path / "config.json").write_text("{}")
    (cell.parent / "seed-7").mkdir()
    (cell.parent / "seed-x").mkdir()
    root = cell.parent.parent.parent
    assert [path.name for path in store.find_cells(root)] == ["seed-2", "seed-3", "seed-10"]
    assert store.find_cells(cell) == [cell]
    assert store.find_cells(root / "nowhere") == []


def test_failure_is_read_with_its_round(cell):
    (cell / "run.json").unlink()
    store.write_json(cell / "failure.json", {"schema": 1, "error": "NaN", "traceback": "…", "round": 4})
    assert store.read_failure(cell) == store.CellFailure(cell, "FrozenLake/v1", "iif", 3, "NaN", 4)


def test_failure_before_the_config_takes_its_identity_from_the_folders(tmp_path):
    path = store.cell_dir(tmp_path, "MiniGrid-Empty-8x8/v3", "my.mod:F:path=/a b", 12)
    path.mkdir(parents=True)
    store.write_json(path / "failure.json", {"schema": 1, "error": "no", "traceback": "", "round": None})
    failure = store.read_failure(path)
    assert (failure.task, failure.spec, failure.seed) == ("MiniGrid-Empty-8x8/v3", "my.mod:F:path=/a b", 12)


def test_an_interrupted_cell_says_how_to_go_on(cell):
    (cell / "run.json").unlink()
    assert "run the same command again" in store.read_failure(cell).error


def test_write_json_replaces_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "x.json"
    store.write_json(path, {"a": 1})
    store.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    with pytest.raises(ValueError, match="JSON compliant"):
        store.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 2}
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_crash_before_the_rename_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    store.write_json(path, {"a": 1})

    def crash(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="disk full"):
        store.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.mark.parametrize("name", ["config.json", "evals.jsonl", "rounds.jsonl", "run.json"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "list", "binary"])
def test_damaged_files_are_named_with_the_remedy(cell, name, damage):
    file = cell / name
    content = {
        "truncated": file.read_bytes()[:-9],
        "empty": b"",
        "garbage": b"hello",
        "list": b"[1, 2]",
        "binary": b"\xff\xfe\x00",
    }
    file.write_bytes(content[damage])
    with pytest.raises(UsageError) as error:
        store.read_cell(cell)
    message = str(error.value)
    assert message.startswith(str(file))
    assert message.endswith(f"delete {cell} and run the same command again")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["config.json", "evals.jsonl", "rounds.jsonl"])
def test_a_missing_file_is_named(cell, name):
    (cell / name).unlink()
    with pytest.raises(UsageError, match=f"{name} is missing; delete"):
        store.read_cell(cell)


@pytest.mark.parametrize("key", [key for key in CONFIG if key != "schema"])
def test_a_missing_or_mistyped_setting_is_named(cell, key):
    for wrong in ({k: v for k, v in CONFIG.items() if k != key}, CONFIG | {key: None}):
        store.write_json(cell / "config.json", wrong)
        with pytest.raises(UsageError, match=f"config.json .*'{key}'.*delete"):
            store.read_cell(cell)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("evals.jsonl", "step", True),
        ("evals.jsonl", "step", 1.5),
        ("evals.jsonl", "step", 0),
        ("evals.jsonl", "step", 5000),
        ("evals.jsonl", "seconds", "1"),
        ("evals.jsonl", "seconds", float("nan")),
        ("evals.jsonl", "seconds", 3.0),
        ("evals.jsonl", "returns", []),
        ("evals.jsonl", "returns", [1.0, None]),
        ("evals.jsonl", "returns", [float("inf")]),
        ("evals.jsonl", "returns", 1.0),
        ("evals.jsonl", "lengths", [5]),
        ("evals.jsonl", "lengths", [5, 6.5]),
        ("rounds.jsonl", "kept", None),
        ("rounds.jsonl", "optimizer_steps", 1.5),
        ("rounds.jsonl", "skipped", 0),
        ("rounds.jsonl", "seconds", 4.0),
        ("rounds.jsonl", "seconds", {"filter": "x"}),
    ],
)
def test_wrong_values_are_refused(cell, file, key, value):
    first, second = EVALS if file == "evals.jsonl" else ROUNDS
    write_lines(cell / file, [first | {key: value}, second])
    with pytest.raises(UsageError, match=f"{file} has .*delete"):
        store.read_cell(cell)
    del (broken := dict(first))[key]
    write_lines(cell / file, [broken, second])
    with pytest.raises(UsageError, match=f"{file} lacks '{key}'"):
        store.read_cell(cell)


def test_another_schema_is_refused(cell):
    store.write_json(cell / "config.json", CONFIG | {"schema": 2})
    with pytest.raises(UsageError, match="schema 2"):
        store.read_cell(cell)


def test_without_episodes_the_means_stay(cell):
    whole, light = store.read_cell(cell), store.read_cell(cell, episodes=False)
    np.testing.assert_array_equal(light.curve, whole.curve)
    assert (light.returns, light.lengths) == ((), ())
    assert light.config == whole.config


def test_cells_read_together_hold_what_they_share_once(cell):
    shared = Shared()
    one, two = (store.read_cell(cell, shared=shared) for _ in range(2))
    assert one.config["filter_fields"] is two.config["filter_fields"]
    assert one.steps is two.steps
    assert one.config == two.config == CONFIG
    assert shared.value({"a": 1}) != shared.value({"a": 1.5})
    assert shared.value({"a": True})["a"] is True


@pytest.mark.parametrize("value", [True, 10**400, float("nan"), 1e101, "1", None, [1.0]])
def test_a_list_of_numbers_holds_nothing_else(value):
    file = Path("evals.jsonl")
    with pytest.raises(UsageError, match="instead of a finite number"):
        numbers([1, 2.5, value], "returns", file)
    with pytest.raises(UsageError, match="instead of a value of type int"):
        wholes([1, value], "lengths", file)
    assert numbers([1, 2**60 + 1, -0.5], "returns", file).tolist() == [1.0, float(2**60 + 1), -0.5]
    assert wholes([2**63 - 1, -(2**63) + 1], "lengths", file).tolist() == [2**63 - 1, -(2**63) + 1]
    with pytest.raises(UsageError):
        wholes([-(2**63)], "lengths", file)
