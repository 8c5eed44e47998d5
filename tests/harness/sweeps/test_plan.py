"""Which cells a command line means, and in which order they run."""

from pathlib import Path

import pytest

from harness.run import Args
from harness.sweeps import machine
from harness.sweeps.plan import parse_seeds, plan


def order(**settings: object) -> list[tuple[str, int, str]]:
    cells = plan(Args(out=Path("out"), **settings))  # type: ignore[arg-type]
    return [(cell.task.id, cell.seed, cell.spec) for cell in cells]


def test_the_longest_task_comes_first_and_the_filters_of_a_seed_are_neighbours() -> None:
    tasks = ("smoke-MiniGrid", "FrozenLake", "smoke-FrozenLake")
    found = order(filter=(("random",), ("iif",)), task=tasks, seeds="2")
    assert found == [
        (task, seed, spec)
        for task in ("FrozenLake/v1", "smoke-FrozenLake/v1", "smoke-MiniGrid/v1")
        for seed in (0, 1)
        for spec in ("none", "random", "iif")
    ]


def test_nothing_runs_twice() -> None:
    found = order(filter=(("iif", "none", "iif"),), task=("FrozenLake", "FrozenLake/v1"), seeds="1")
    assert found == [("FrozenLake/v1", 0, "none"), ("FrozenLake/v1", 0, "iif")]


@pytest.mark.parametrize(("text", "seeds"), [("3", (0, 1, 2)), ("4,", (4,)), ("0, 7,3", (0, 7, 3))])
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(("cores", "gigabytes", "jobs"), [(2, 24.0, 2), (64, 12.0, 10), (8, 0.5, 1), (4, None, 4)])
def test_jobs_look_at_cores_and_memory(
    cores: int, gigabytes: float | None, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)
    monkeypatch.setattr(machine, "available_memory", lambda: gigabytes and gigabytes * 2**30)
    assert machine.jobs() == jobs
