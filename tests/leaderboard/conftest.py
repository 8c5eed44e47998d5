"""Fake run directories, written file by file as the documentation of `harness.store` describes them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.store import cell_dir, write_json

WriteCell = Callable[..., Path]


@pytest.fixture
def write_cell(tmp_path: Path) -> WriteCell:
    """Writes a complete cell below `tmp_path / "runs"`: one episode per checkpoint, K = len(curve)."""

    def write(
        spec: str,
        seed: int,
        curve: Sequence[float],
        *,
        task: str = "FrozenLake/v1",
        kept: float = 1.0,
        filter_seconds: float = 0.0,
        second_per_round: float = 1.0,
        step: int = 100,
        root: Path | None = None,
        **config: Any,
    ) -> Path:
        path = cell_dir(root or tmp_path / "runs", task, spec, seed)
        path.mkdir(parents=True)
        defaults = {
            "schema": 1,
            "task": task,
            "filter": spec,
            "filter_class": f"filters:{spec}",
            "filter_fields": {},
            "apply": "repack",
            "seed": seed,
            "device": "cpu",
            "agent": "ppo",
            "args": {"learning_rate": 0.005, "seed": seed},
            "references": {"random": 0.0, "solved": 1.0},
        }
        write_json(path / "config.json", defaults | config)
        evals = [
            {
                "round": k,
                "step": step * k,
                "seconds": second_per_round * k,
                "returns": [value],
                "lengths": [7],
            }
            for k, value in enumerate(curve, start=1)
        ]
        rounds = [
            {
                "round": k,
                "step": step * (k + 1),
                "kept": kept,
                "optimizer_steps": 3,
                "skipped": False,
                "seconds": {
                    "environment": second_per_round - filter_seconds,
                    "filter": filter_seconds,
                    "evaluation": 50.0,
                    "logging": 50.0,
                },
            }
            for k in range(len(curve))
        ]
        for name, lines in (("evals.jsonl", evals), ("rounds.jsonl", rounds)):
            (path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_json(path / "run.json", {"schema": 1, "status": "complete", "seconds": {}, "provenance": {}})
        return path

    return write


@pytest.fixture
def write_failure(tmp_path: Path) -> WriteCell:
    """Writes a cell that failed."""

    def write(spec: str, seed: int, error: str, *, task: str = "FrozenLake/v1") -> Path:
        path = cell_dir(tmp_path / "runs", task, spec, seed)
        path.mkdir(parents=True)
        write_json(path / "failure.json", {"schema": 1, "error": error, "traceback": "Traceback …", "round": 3})
        return path

    return write
