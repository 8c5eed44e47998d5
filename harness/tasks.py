"""Which settings decide a result? Every task and suite, in one place.

Changing anything in a task that decides its result means a new version of its id; results of different versions are
never compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from algos import ppo, ppo_minigrid
from filters.errors import UsageError
from filters.registry import suggest

AgentArgs = ppo.Args | ppo_minigrid.Args


@dataclass(frozen=True)
class Task:
    """An environment with everything that decides the result."""

    id: str
    """name and version, `MiniGrid-Empty-8x8/v1`"""
    about: str
    """one line for `--list`"""
    args: AgentArgs
    """the agent's settings: environment, hyperparameters, budget, evaluation protocol"""
    random: float
    """mean return of a uniformly random policy, the 0 of normalised scores (over 1,000 episodes; FrozenLake 5,000)"""
    solved: float
    """the 1 of normalised scores"""
    filter_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """field values that a filter takes on this task unless its spec says otherwise"""

    @property
    def agent(self) -> str:
        """The module in `algos` that trains on it."""
        return type(self.args).__module__.rpartition(".")[2]

    @property
    def module(self) -> Any:
        """That module, with its `train`."""
        return import_module(f"algos.{self.agent}")

    @property
    def references(self) -> dict[str, float]:
        """The fixed scores between which returns are normalised."""
        return {"random": self.random, "solved": self.solved}


IIF_PPO: dict[str, Any] = {
    # Hu et al. 2025: Stable-Baselines3 semantics, plain SGD; the code behind the numbers does not clip gradients.
    "num_envs": 1,
    "num_steps": 2048,
    "minibatch_size": 64,
    "update_epochs": 10,
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "anneal_lr": False,
    "clip_value_loss": False,
    "entropy_coef": 0.0,
    "value_coef": 0.5,
    "max_grad_norm": 0.0,
    "hidden": (64, 64),
    "eval_every": 1,
}


def iif_mlp(env_id: str, *, rounds: int, **settings: Any) -> ppo.Args:
    """Settings of the IIF paper for vector observations."""
    return ppo.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | settings))


def iif_minigrid(env_id: str, *, rounds: int, **settings: Any) -> ppo_minigrid.Args:
    """Settings of the IIF paper for MiniGrid: separate 64-64 networks behind the trunk, input / 255."""
    return ppo_minigrid.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | {"obs_scale": 255.0} | settings))


FROZEN_LAKE: dict[str, bool | int | float | str] = {"map_name": "4x4", "is_slippery": False}
HALF = {"iif": {"fraction": 0.5}}
EIGHTH = {"iif": {"fraction": 0.125}}

_TASKS = (
    Task(
        id="FrozenLake/v1",
        about="FrozenLake-v1 4x4, not slippery, one-hot; IIF setting, 50 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=50, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        filter_defaults=HALF,
    ),
    Task(
        id="Acrobot/v1",
        about="Acrobot-v1; IIF setting, 50 rounds",
        args=iif_mlp("Acrobot-v1", rounds=50),
        random=-498.4,
        solved=-80.0,
        filter_defaults=HALF,
    ),
    Task(
        id="MiniGrid-Empty-8x8/v1",
        about="MiniGrid-Empty-8x8-v0; IIF setting, 40 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=40),
        random=0.0944,
        solved=0.96,
        filter_defaults=EIGHTH,
    ),
    Task(
        id="MiniGrid-Empty-8x8-dtv/v1",
        about="MiniGrid-Empty-8x8-v0; DTV setting, 16 environments × 128 steps, 160,000 steps",
        args=ppo_minigrid.Args(),
        random=0.0944,
        solved=0.96,
        filter_defaults=EIGHTH,
    ),
    Task(
        id="FrozenLake-quick/v1",
        about="FrozenLake in the IIF setting cut to 20 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=20, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        filter_defaults=HALF,
    ),
    Task(
        id="MiniGrid-Empty-8x8-quick/v1",
        about="MiniGrid-Empty-8x8 in the IIF setting cut to 25 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=25),
        random=0.0944,
        solved=0.96,
        filter_defaults=EIGHTH,
    ),
    Task(
        id="smoke-FrozenLake/v1",
        about="two short rounds of FrozenLake, for tests",
        args=iif_mlp(
            "FrozenLake-v1", rounds=1, env_kwargs=FROZEN_LAKE, num_steps=1024, update_epochs=2, eval_episodes=4
        ),
        random=0.0134,
        solved=1.0,
        filter_defaults=HALF,
    ),
    Task(
        id="smoke-MiniGrid/v1",
        about="two short rounds of MiniGrid-Empty-5x5, for tests",
        args=ppo_minigrid.Args(
            env_id="MiniGrid-Empty-5x5-v0",
            total_steps=512,
            num_envs=4,
            num_steps=64,
            update_epochs=2,
            eval_every=1,
            eval_episodes=4,
        ),
        random=0.2015,
        solved=0.95,
        filter_defaults=EIGHTH,
    ),
)

TASKS: dict[str, Task] = {task.id: task for task in _TASKS}

SUITES: dict[str, tuple[str, ...]] = {
    "smoke": ("smoke-FrozenLake/v1", "smoke-MiniGrid/v1"),
    "quick": ("FrozenLake-quick/v1", "MiniGrid-Empty-8x8-quick/v1"),
}
"""a suite's tasks; the default suite is `quick`"""


def find_task(task_id: str) -> Task:
    """The task of that id; without a version, the newest one. Raises UsageError with near misses."""
    if task_id in TASKS:
        return TASKS[task_id]
    versions = [task for task in _TASKS if task.id.rpartition("/")[0] == task_id]
    if versions:
        return max(versions, key=lambda task: int(task.id.rpartition("/v")[2]))
    raise UsageError(f"unknown task {task_id!r}; {suggest(task_id, list(TASKS))}")


def find_suite(name: str) -> tuple[Task, ...]:
    """The tasks of a suite. Raises UsageError with near misses."""
    if name not in SUITES:
        raise UsageError(f"unknown suite {name!r}; {suggest(name, list(SUITES))}")
    return tuple(TASKS[task_id] for task_id in SUITES[name])
