"""Fake run directories, written file by file as the documentation of `leaderboard.runs.store` describes them."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from leaderboard.runs.store import cell_dir, write_json

WriteCell = Callable[..., Path]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def smoke_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run directories of `none` and `iif` on the `smoke` suite, five seeds; made once, even by several workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "smoke.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "harness.run", "--suite", "smoke", "--filter", "iif", "--out", "smoke"]
        subprocess.run(
            [*command, "--jobs", "2"], check=True, cwd=shared, env=environment(), capture_output=True, timeout=300
        )
    return shared / "smoke"


@pytest.fixture(scope="session")
def smoke_submission(smoke_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The submission of these runs; read only, a test that writes copies it."""
    out = tmp_path_factory.mktemp("submission") / "smoke-iif.json"
    words = [
        "leaderboard.submit",
        str(smoke_runs),
        "--suite",
        "smoke",
        "--name",
        "IIF, smoke",
        "--authors",
        "A. Author",
    ]
    subprocess.run(
        [sys.executable, "-m", *words, "--out", str(out)],
        check=True,
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    return out


def environment(*folders: Path) -> dict[str, str]:
    """The environment of a command that runs somewhere else but imports this checkout, and more folders."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [ROOT, *folders]))}


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
