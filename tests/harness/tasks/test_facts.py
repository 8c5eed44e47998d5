"""The leaderboard's facts about tasks are those of the tasks, and its phases are those of the clock."""

import json
from dataclasses import asdict

import pytest

from algos.training import clock
from harness.tasks import facts
from harness.tasks.catalogue import SUITES, TASKS, seeds_of
from leaderboard.entries import catalogue
from leaderboard.runs import store


def test_the_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert facts.main([]) == 0, "run `python -m harness.tasks.facts --write` and look at what changed"


def test_a_changed_task_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["smoke-FrozenLake/v1"]
    monkeypatch.setattr(facts, "TASKS", TASKS | {task.id: task.varied(eval_episodes=5)})
    assert facts.main([]) == 1


def test_what_is_read_is_what_the_task_says() -> None:
    assert catalogue.tasks().keys() == TASKS.keys()
    for name, task in TASKS.items():
        found = catalogue.tasks()[name]
        args = json.loads(json.dumps(asdict(task.args)))
        assert found.args | {"seed": 0, "device": "cpu"} == args
        assert (found.checkpoints, found.rounds, found.batch_size) == (
            task.checkpoints,
            task.args.rounds,
            task.args.batch_size,
        )
        assert (found.agent, found.returns, found.apply) == (task.agent, task.returns, task.apply)
    assert {name: suite.tasks for name, suite in catalogue.suites().items()} == SUITES
    assert all(suite.seeds == seeds_of(name) for name, suite in catalogue.suites().items())


def test_both_sides_of_a_run_directory_mean_the_same_phases() -> None:
    assert store.PHASES == clock.PHASES
    assert store.TRAINING == clock.TRAINING
