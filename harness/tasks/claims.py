"""Which tasks answer the papers' claims? Their evaluation protocol, the controls, and the walk between settings."""

from typing import Any

from algos.envs.interface import Backend
from harness.tasks.papers import PAPERS, drops, iif_minigrid
from harness.tasks.task import Task

WALK: dict[str, dict[str, Any]] = {
    "scale": {"obs_scale": 10.0},
    "heads": {"hidden": ()},
    "envs": {"num_envs": 16, "num_steps": 128},
    "clip": {"max_grad_norm": 0.5},
}
"""what differs between MiniGrid-Empty-8x8 in the IIF setting and in the DTV setting, one difference at a time"""


def walk_task(*steps: str) -> Task:
    """MiniGrid-Empty-8x8 in the IIF setting with some settings of the DTV paper, and the DTV setting's budget."""
    changes = {name: value for step in steps for name, value in WALK[step].items()}
    return Task(
        id=f"MiniGrid-walk{''.join(f'-{step}' for step in steps)}/v1",
        about=f"MiniGrid-Empty-8x8-v0; IIF setting with the DTV setting's {', '.join(('budget', *steps))}",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=79, **changes),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    )


WALKS = tuple(
    walk_task(*steps)
    for steps in (
        (),
        ("scale",),
        ("heads",),
        ("envs",),
        ("clip",),
        ("scale", "heads"),
        ("scale", "envs"),
        ("heads", "envs"),
        ("scale", "heads", "envs"),
    )
)

CLAIMS: dict[str, tuple[Backend, int, int]] = {
    "FrozenLake/v1": ("gymnasium", 1000, 1),
    "Acrobot/v1": ("envpool", 100, 1),
    "MiniGrid-Empty-8x8/v3": ("envpool", 100, 1),
    "Highway/v1": ("envpool", 100, 1),
    "LunarLander/v2": ("envpool", 100, 1),
    "BipedalWalker/v1": ("envpool", 50, 10),
    "MiniGrid-Empty-8x8-adam/v3": ("envpool", 100, 1),
    "LunarLander-adam/v2": ("envpool", 100, 1),
    "MiniGrid-Empty-8x8-dtv/v1": ("envpool", 100, 1),
    "MiniGrid-DoorKey-8x8/v1": ("envpool", 100, 4),
    **{task.id: ("envpool", 100, 2) for task in WALKS},
}
"""backend, episodes an evaluation and rounds between evaluations of the tasks behind the papers' claims. A level is
reached in the first round whose evaluation says so, hence every round where that is affordable; and a hundred episodes,
so that the best of all evaluations is no lucky one (FrozenLake and Highway: as many as the paper)."""


def claim_task(task: Task, *, episodes: int = 0, restart: bool = False) -> Task:
    """The task under the protocol of CLAIMS, with another number of episodes, or with restarts after every round."""
    backend, usual, every = CLAIMS[task.id]
    return task.varied(
        env_backend=backend, eval_episodes=episodes or usual, eval_every=every, checkpoint_every=1 if restart else 0
    )


RESTARTED = ("MiniGrid-Empty-8x8/v3", "LunarLander/v2")
"""the tasks on which the claims runs also start all environments anew before every round"""
SHOWN = "MiniGrid-Empty-8x8/v3"
"""the task on which the claims runs show what the papers' full evaluation changes"""
BY_ID = {task.id: task for task in (*PAPERS, *WALKS)}


def claim_ids(*task_ids: str, restart: bool = False, episodes: int = 0) -> tuple[str, ...]:
    """The ids of these tasks under the protocol of the claims."""
    return tuple(claim_task(BY_ID[task_id], restart=restart, episodes=episodes).id for task_id in task_ids)
