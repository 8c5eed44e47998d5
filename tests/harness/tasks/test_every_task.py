"""Every task on every backend: one round with every filter, and the same bytes when run again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from algos.training.recorder import SilentRecorder
from filters.api import run_filter
from filters.errors import UsageError
from filters.registry import make, names
from harness.tasks.catalogue import TASKS
from harness.tasks.task import Task

# Tasks that share environment and agent differ in numbers alone.
DISTINCT = [
    "FrozenLake/v1",
    "Acrobot/v1",
    "MiniGrid-Empty-8x8/v3",
    "Highway/v1",
    "LunarLander/v2",
    "BipedalWalker/v1",
    "MiniGrid-DoorKey-8x8/v1",
    "Pong/v1",
    "CartPole/v2",
]
NOT_NATIVE = "FrozenLake/v1"


def test_the_list_leaves_no_environment_out() -> None:
    def key(task: Task) -> tuple[str, str]:
        return task.agent, task.args.env_id

    smoke = {key(task) for task in TASKS.values() if task.id.startswith("smoke")}
    assert {key(TASKS[task_id]) for task_id in DISTINCT} | smoke == {key(task) for task in TASKS.values()}


def small(task: Task, backend: Any = "gymnasium") -> Any:
    """The task's settings, cut to two rounds of 32 records."""
    envs = min(task.args.num_envs, 2)
    cut = {"num_envs": envs, "num_steps": 32 // envs, "minibatch_size": 16, "total_steps": 64, "update_epochs": 1}
    return replace(task.args, **cut, eval_every=2, eval_episodes=1, env_backend=backend)


@pytest.mark.parametrize("task_id", DISTINCT)
def test_one_round_with_every_filter(task_id: str) -> None:
    task = TASKS[task_id]
    args = small(task)
    module = task.module
    state = module.open_state(args)
    rollout, _ = module.collect(state, args, SilentRecorder())
    for name in names():
        filter = make(name, task.filter_defaults)
        later = replace(rollout, round=10)  # past every warm-up
        selection = run_filter(filter, later, module.open_objective(state.agent, later, args))
        sums, steps = module.update(state, later, selection, filter.apply, args)
        assert steps <= 2, name
        assert bool(torch.isfinite(sums).all()), name
    state.envs.close()


@pytest.mark.parametrize("backend", ["gymnasium", "envpool"])
@pytest.mark.parametrize("task_id", DISTINCT)
def test_a_cell_run_twice_gives_the_same_bytes(task_id: str, backend: str) -> None:
    task = TASKS[task_id]
    if backend == "envpool" and task_id == NOT_NATIVE:
        with pytest.raises(UsageError, match="gymnasium"):
            task.module.open_state(small(task, backend))
        return
    ends = []
    for _ in range(2):
        recorder = SilentRecorder()
        agent = task.module.train(small(task, backend), make("iif", task.filter_defaults), recorder)
        parameters = b"".join(p.detach().numpy().tobytes() for p in agent.parameters())
        ends.append((parameters, [returns.tolist() for returns in recorder.returns]))
    assert ends[0] == ends[1]
    assert np.isfinite(ends[0][1]).all()
