"""A filter that changes what it was only to look at is noticed in that very round, whichever way it does it."""

import gc
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo
from algos.training.recorder import SilentRecorder
from filters.api import Filter, Objective, Rollout, Selection
from filters.errors import FilterError
from filters.guard import Guard, bit_sum
from harness.cells.cell import Cell, take_cell
from harness.tasks.catalogue import find_task
from leaderboard.runs.store import read_run

ARGS = ppo.Args(env_id="CartPole-v1", total_steps=64, num_envs=2, num_steps=16, minibatch_size=16)


@dataclass(frozen=True)
class Meddler(Filter):
    """Keeps all and does something besides."""

    act: Callable[[Rollout, Objective], object] = lambda rollout, objective: None

    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        self.act(rollout, objective)
        return Selection(torch.ones(rollout.n, dtype=torch.bool))


def critic_by_the_back_door(rollout: Rollout, objective: Objective) -> None:
    for found in gc.get_objects():
        if type(found) is ppo.Agent:  # isinstance would ask lazy modules, too
            found.critic[0].weight.data.mul_(1.5)


def first(objective: Objective) -> torch.Tensor:
    return next(iter(objective.params.values()))


WAYS: dict[str, tuple[Callable[[Rollout, Objective], object], str]] = {
    "advantages in place": (lambda r, o: r.advantages.mul_(2), "advantages"),
    "rewards in place": (lambda r, o: r.rewards.add_(1), "rewards"),
    "one number through NumPy": (lambda r, o: r.advantages.numpy().__setitem__(0, 7.0), "advantages"),
    "a parameter": (lambda r, o: first(o).mul_(1.01), "params"),
    "a parameter through .data": (lambda r, o: first(o).data.mul_(1.01), "params"),
    "the critic, found elsewhere": (critic_by_the_back_door, "the policy's critic"),
    "torch's random state": (lambda r, o: torch.rand(1), "the global random state of torch"),
    "NumPy's random state": (lambda r, o: np.random.rand(), "the global random state of NumPy"),  # noqa: NPY002
    "Python's random state": (lambda r, o: random.random(), "the global random state of Python"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_noticed(way: str) -> None:
    act, what = WAYS[way]
    with pytest.raises(FilterError, match=f"in round 0 changed .*{what}"):
        ppo.train(ARGS, Meddler(act), SilentRecorder())


def test_looking_is_allowed() -> None:
    def look(rollout: Rollout, objective: Objective) -> None:
        torch.rand(3, generator=rollout.generator)
        objective.per_record(
            {name: p.clone().requires_grad_() for name, p in objective.params.items()}
        ).sum().backward()

    recorder = SilentRecorder()
    ppo.train(ARGS, Meddler(look), recorder)
    assert len(recorder.rounds) == 2


def test_exchanged_numbers_are_noticed_without_a_version() -> None:
    values = torch.arange(6.0)
    guard = Guard({"values": values})
    assert guard.changed() == []
    shared = values.numpy()
    shared[[0, 5]] = shared[[5, 0]]
    assert guard.changed() == ["values"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8, torch.int64, torch.bool])
def test_one_bit_of_every_dtype_counts(dtype: torch.dtype) -> None:
    tensor = torch.zeros(5, dtype=dtype)
    before = bit_sum(tensor)
    tensor[3] = 1
    assert bit_sum(tensor) != before


def test_a_cell_fails_with_it_and_a_sound_one_says_which_parameters_it_ended_with(tmp_path: Path) -> None:
    spec = "tests.broken_filters:ScalesParameters"
    task = find_task("smoke-FrozenLake")
    outcome = take_cell(Cell(task, spec, 0, tmp_path), lambda done, rounds: None)
    assert outcome.error is not None
    assert "changed params" in outcome.error
    hashes: list[Any] = []
    for name in ("none", "iif:fraction=0", "random"):
        cell = Cell(task, name, 0, tmp_path)
        assert take_cell(cell, lambda done, rounds: None).error is None
        hashes.append(read_run(cell.path)["parameters"])
    assert hashes[0] == hashes[1] != hashes[2]
