"""How does a fixed reference for IIF come about? From a trained policy and one rollout of its own."""

from dataclasses import replace
from pathlib import Path

import torch

from algos.training.alone import ConsoleRecorder
from filters.gradients.reference import Reference
from filters.registry import make
from harness.tasks.task import Task


def make_reference(task: Task, *, seed: int, events: Path) -> Reference:
    """Train plain PPO on the task, printing its progress, and play one more rollout with its policy.

    Args:
        task: what to train on.
        seed: seed of the training; none that is compared with later.
        events: folder of the TensorBoard events.
    """
    torch.set_num_threads(1)
    settings = replace(task.args, seed=seed)
    recorder = ConsoleRecorder(events, settings)
    agent = task.module.train(settings, make("none"), recorder)
    state = task.module.open_state(settings)
    state.agent = agent
    rollout, _ = task.module.collect(state, settings, recorder)
    recorder.close()
    params = {name: p.detach() for name, p in agent.named_parameters()}
    return Reference(task.id, params, rollout.obs, rollout.actions, rollout.advantages)
