"""The benchmark's tables come out on a small task, whatever the numbers, and bad input is one sentence."""

from pathlib import Path

import pytest

from algos.training.compiled import has_compiler
from filters.errors import UsageError
from harness.bench import __main__ as bench
from harness.bench.rounds import in_turn
from harness.tasks.catalogue import TASKS

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler and Python's headers")
SMALL = ["--task", "smoke-FrozenLake/v1", "--rounds", "1", "--no-peer"]


@needs_compiler
def test_every_row_has_a_number_where_something_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    bench.main([*SMALL, "--tables", "speed", "memory"])
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if "smoke-FrozenLake/v1" in line]
    speed, memory = ([cell.strip() for cell in row] for row in rows)
    assert all(float(cell.replace(",", "")) > 0 for cell in speed[1:3])
    assert speed[3:] == ["–", "–", "–", "–"], "no peer was asked for, and EnvPool does not have the task"
    assert all(50 < float(cell) < 4000 for cell in memory[1:])


@needs_compiler
def test_the_profile_shows_every_phase_and_the_operations(tmp_path: Path) -> None:
    bench.main([*SMALL, "--profile", str(tmp_path / "profile.md")])
    text = (tmp_path / "profile.md").read_text(encoding="utf-8")
    for phase in ("environment", "inference", "filter", "update", "evaluation"):
        assert f"{phase} ms" in text
    assert "aten::addmm" in text


def test_sides_are_measured_in_turn_and_the_least_counts() -> None:
    order: list[str] = []
    found = in_turn({"one": lambda: order.append("one"), "other": lambda: order.append("other")}, times=3)
    assert order == ["one", "other"] * 3
    assert all(0 <= least < 10 for least in found.values())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--task", "LunarLandr"], "LunarLander"),
        (["--rounds", "0"], "--rounds must be 1 or more"),
        (["--device", "cuda"], "finds no CUDA device"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=sentence):
        bench.main(words)


def test_the_tasks_of_the_benchmark_exist() -> None:
    assert set(bench.TASK_IDS) <= TASKS.keys()
