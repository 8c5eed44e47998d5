"""Which cells a command line means, and in which order they run."""

from pathlib import Path

import pytest

from filters.errors import UsageError
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


def test_every_spelling_of_a_setting_is_one_filter() -> None:
    words = (
        "iif:fraction=0.10",
        "iif:fraction=.1",
        "iif:fraction=1e-1",
        "iif:warmup=0,fraction=0.1",
        "iif:fraction=1.0",
    )
    found = order(filter=(words,), task=("FrozenLake",), seeds="1")
    assert [spec for _, _, spec in found] == ["none", "iif:fraction=0.1", "iif:fraction=1"]
    nested = ("random-matched:of=iif:fraction=0.10", "random-matched:of=iif:fraction=.1", "random-matched:of=iif")
    found = order(filter=(nested, ("random-matched",)), task=("FrozenLake",), seeds="1")
    assert [spec for _, _, spec in found] == ["none", "random-matched:of=iif:fraction=0.1", "random-matched"]


def test_a_setting_that_changes_nothing_on_any_task_goes() -> None:
    """FrozenLake's own share is 0.5, MiniGrid's 0.125: on both together each is a setting, on one alone it is none."""
    specs = [spec for _, _, spec in order(filter=(("iif:fraction=0.5", "iif"),), task=("FrozenLake",), seeds="1")]
    assert specs == ["none", "iif"]
    both = ("FrozenLake", "smoke-MiniGrid")
    specs = [spec for _, _, spec in order(filter=(("iif:fraction=0.5", "iif"),), task=both, seeds="1")]
    assert specs == ["none", "iif:fraction=0.5", "iif"] * 2


def test_a_family_of_settings() -> None:
    found = order(filter=(("iif:fraction={0.05,0.5},warmup={0,2}",),), task=("smoke-MiniGrid",), seeds="1")
    assert [spec for _, _, spec in found] == [
        "none",
        "iif:fraction=0.05",
        "iif:fraction=0.05,warmup=2",
        "iif:fraction=0.5",
        "iif:fraction=0.5,warmup=2",
    ]
    for wrong in ("iif:fraction={0.05", "iif:fraction={}", "iif:fraction={{1}}", "iif:fraction=}"):
        with pytest.raises(UsageError, match="write a family of settings"):
            order(filter=((wrong,),), task=("smoke-MiniGrid",), seeds="1")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"seeds": str(2**63)}, "100,000 at most"),
        ({"seeds": f"{2**63},"}, "seeds lie in 0..2,147,483,647"),
        ({"seeds": "0-9999999"}, "100,000 at most"),
        ({"seeds": "5-2"}, "takes a number of seeds"),
        ({"seeds": "-3"}, "takes a number of seeds"),
        ({"seeds": "1,1"}, "takes a number of seeds"),
        ({"seeds": "0-3,2"}, "takes a number of seeds"),
        ({"eval_episodes": 10**20}, "--eval-episodes may be 1,000,000 at most"),
        ({"checkpoint_every": 10**20}, "--checkpoint-every may be"),
        ({"jobs": 10**9}, "--jobs may be 65,536 at most"),
    ],
)
def test_outsized_numbers_are_refused(words: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        order(filter=(("none",),), task=("smoke-FrozenLake",), **words)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("4,", (4,)), ("0, 7,3", (0, 7, 3)), ("5-9", (5, 6, 7, 8, 9)), ("0,5-7", (0, 5, 6, 7))],
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(("cores", "gigabytes", "jobs"), [(2, 24.0, 2), (64, 12.0, 10), (8, 0.5, 1), (4, None, 4)])
def test_jobs_look_at_cores_and_memory(
    cores: int, gigabytes: float | None, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "cores", lambda: cores)
    monkeypatch.setattr(machine, "available_memory", lambda: gigabytes and gigabytes * 2**30)
    assert machine.jobs() == jobs
