"""A task on the corridor, found by its entry point or its import path, and a suite of two."""

from dataclasses import replace

from algos import ppo
from harness.tasks.task import Task

CORRIDOR = Task(
    id="Corridor",
    about="outside/Corridor-v0, two rounds",
    args=ppo.Args(
        env_id="outside_env:outside/Corridor-v0",
        total_steps=1024,
        num_envs=4,
        eval_every=1,
        eval_episodes=4,
        anneal_lr=False,
    ),
    random=0.8,
    solved=1.0,
    returns=(0.0, 1.0),
    filter_defaults={"iif": {"fraction": 0.5}},
)
LONGER = replace(CORRIDOR, args=replace(CORRIDOR.args, env_kwargs={"length": 9}))
SUITE = (CORRIDOR, "smoke-FrozenLake")
