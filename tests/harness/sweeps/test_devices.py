"""`--device auto` takes what is faster by measurement, and stays with it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.cells.cell import Cell, describe
from harness.run import Args
from harness.sweeps import devices
from harness.sweeps.devices import Device, device_of_past_runs, faster_device, seconds_of_a_round
from harness.sweeps.plan import plan
from harness.tasks.catalogue import TASKS
from harness.tasks.task import Task
from leaderboard.runs.store import cell_dir

TASK = TASKS["smoke-FrozenLake/v1"]


def test_without_a_gpu_the_cpu_is_taken_and_nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> float:
        raise AssertionError("measured")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(devices, "seconds_of_a_round", never)
    assert faster_device(TASK) == "cpu"


@pytest.mark.parametrize(
    ("seconds", "expected"), [({"cpu": 2.0, "cuda": 1.0}, "cuda"), ({"cpu": 1.0, "cuda": 2.0}, "cpu")]
)
def test_the_faster_device_is_taken_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: dict[str, float], expected: str
) -> None:
    def measured(task: Task, device: Device) -> float:
        return seconds[device]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(devices, "seconds_of_a_round", measured)
    assert faster_device(TASK) == expected
    assert f"taking {expected}" in capsys.readouterr().err


def test_a_measurement_trains_and_leaves_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    assert seconds_of_a_round(TASK, "cpu") > 0
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("text", ['{"device": "tpu"}', "[]", "not json", "{}"])
def test_auto_stays_with_the_device_of_past_runs(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cell_dir(tmp_path, TASK.id, "iif", 3)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(text)
    assert device_of_past_runs(TASK, tmp_path) is None
    cell = Cell(task=TASK, spec="iif", seed=3, out=tmp_path)
    (folder / "config.json").write_text(json.dumps(describe(cell) | {"device": "cuda"}))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(devices, "seconds_of_a_round", lambda *_: 1.0)
    assert device_of_past_runs(TASK, tmp_path) == "cuda"
    cells = plan(Args(filter=(("none",),), task=(TASK.id,), out=tmp_path))
    assert {cell.device for cell in cells} == {"cuda"}
    assert {cell.task.args.compile for cell in cells} == {"off"}
