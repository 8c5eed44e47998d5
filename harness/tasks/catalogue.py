"""Which tasks and suites are there, and which one does a name mean?"""

from collections.abc import Iterator

from filters.errors import UsageError
from filters.registry import suggest
from harness.tasks.claims import BY_ID, CLAIMS, RESTARTED, SHOWN, WALKS, claim_ids, claim_task
from harness.tasks.task import Task

CORRUPTED = "MiniGrid-Empty-8x8-dtv/v1"
"""the task whose records the suite `corrupt` makes harmful"""
CORRUPTIONS = tuple(f"{kind}:{fraction}" for kind in ("advantage-flip", "reward-flip") for fraction in (0.2, 0.4))
CORRUPT_TASKS = tuple(BY_ID[CORRUPTED].varied(corrupt=corrupt) for corrupt in CORRUPTIONS)


def variants() -> Iterator[Task]:
    """The tasks that are other tasks in other circumstances."""
    yield from CORRUPT_TASKS
    yield from (claim_task(BY_ID[task_id]) for task_id in CLAIMS)
    yield from (claim_task(BY_ID[task_id], restart=True) for task_id in RESTARTED)
    yield claim_task(BY_ID[SHOWN], episodes=1000)


TASKS: dict[str, Task] = BY_ID | {task.id: task for task in variants()}

SUITES: dict[str, tuple[str, ...]] = {
    "smoke": ("smoke-FrozenLake/v1", "smoke-MiniGrid/v1"),
    "quick": ("FrozenLake-quick/v1", "MiniGrid-Empty-8x8-quick/v3"),
    "iif": (
        "FrozenLake/v1",
        "Acrobot/v1",
        "MiniGrid-Empty-8x8/v3",
        "Highway/v1",
        "LunarLander/v2",
        "BipedalWalker/v1",
    ),
    "iif-adam": ("MiniGrid-Empty-8x8-adam/v3", "LunarLander-adam/v2"),
    "dtv": ("MiniGrid-Empty-8x8-dtv/v1", "MiniGrid-DoorKey-8x8/v1"),
    "atari": ("Pong/v1",),
    "cleanrl": ("CartPole/v2", "Acrobot-cleanrl/v2"),
    "corrupt": (CORRUPTED, *(task.id for task in CORRUPT_TASKS)),
    "claims-settings": claim_ids("MiniGrid-Empty-8x8/v3", "MiniGrid-Empty-8x8-dtv/v1"),
    "claims-iif": claim_ids("FrozenLake/v1", "Acrobot/v1", "MiniGrid-Empty-8x8/v3", "Highway/v1", "LunarLander/v2"),
    "claims-walker": claim_ids("BipedalWalker/v1"),
    "claims-adam": claim_ids("MiniGrid-Empty-8x8-adam/v3", "LunarLander-adam/v2"),
    "claims-share": claim_ids("FrozenLake/v1", "MiniGrid-Empty-8x8/v3"),
    "claims-dtv": claim_ids("MiniGrid-Empty-8x8-dtv/v1"),
    "claims-doorkey": claim_ids("MiniGrid-DoorKey-8x8/v1"),
    "claims-walk": claim_ids(*(task.id for task in WALKS)),
    "claims-restart": claim_ids(*RESTARTED) + claim_ids(*RESTARTED, restart=True),
    "claims-protocol": claim_ids(SHOWN, episodes=1000),
}
"""a suite's tasks; the default suite is `quick`"""
SEEDS = 5
"""seeds that a suite is run with"""
MORE_SEEDS = {"claims-settings": 10, "claims-dtv": 10, "claims-doorkey": 35}
"""the suites that need more of them, as effects there are rare or small; fixed before the first run"""


def seeds_of(suite: str) -> int:
    """How many seeds a suite is run with: 0 to that number less one."""
    return MORE_SEEDS.get(suite, SEEDS)


def find_task(task_id: str) -> Task:
    """The task of that id; without a version, the newest one. Raises UsageError with near misses."""
    if task_id in TASKS:
        return TASKS[task_id]
    versions = [
        task
        for task in TASKS.values()
        if task.id.partition("@")[0].rpartition("/")[0] == task_id and "@" not in task.id
    ]
    if versions:
        return max(versions, key=lambda task: int(task.id.rpartition("/v")[2]))
    raise UsageError(f"unknown task {task_id!r}; {suggest(task_id, list(TASKS))}")


def find_suite(name: str) -> tuple[Task, ...]:
    """The tasks of a suite. Raises UsageError with near misses."""
    if name not in SUITES:
        raise UsageError(f"unknown suite {name!r}; {suggest(name, list(SUITES))}")
    return tuple(TASKS[task_id] for task_id in SUITES[name])
