"""Which settings decide a result? Every task and suite, in one place.

Changing anything in a task that decides its result means a new version of its id; results of different versions are
never compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.envs.vector import Backend
from algos.training.corrupt import Corruption
from filters.api import Apply
from filters.errors import UsageError
from filters.registry import suggest

AgentArgs = ppo.Args | ppo_continuous.Args | ppo_minigrid.Args | ppo_atari.Args


@dataclass(frozen=True, eq=False)
class Task:
    """An environment with everything that decides the result. Tasks are equal if their ids are."""

    id: str
    """name and version, `MiniGrid-Empty-8x8/v3`, and what was varied: `MiniGrid-Empty-8x8/v3@envpool`"""
    about: str
    """one line for `--list`"""
    args: AgentArgs
    """the agent's settings: environment, hyperparameters, budget, evaluation protocol"""
    random: float
    """mean return of a uniformly random policy, the 0 of normalised scores (over 1,000 episodes; FrozenLake
    5,000, DoorKey 300, Pong 50)"""
    solved: float
    """the 1 of normalised scores"""
    returns: tuple[float, float]
    """lowest and highest return that an episode can have; where no bound is known, generous round numbers"""
    filter_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """field values that a filter takes on this task unless its spec says otherwise"""
    apply: Apply | None = None
    """how selections are applied; None: as each filter says"""
    paper_episodes: int = 1000
    """episodes of the papers' evaluation, which comes after every round"""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def agent(self) -> str:
        """The module in `algos` that trains on it."""
        return type(self.args).__module__.rpartition(".")[2]

    @property
    def module(self) -> Any:
        """That module, with its `train`."""
        return import_module(f"algos.{self.agent}")

    @property
    def work(self) -> int:
        """Records that environment and update have to go through: a rough measure of the time a run takes."""
        return self.args.total_steps * (1 + self.args.update_epochs)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """[K] environment steps before each evaluation."""
        args = self.args
        evaluated = [n for n in range(1, args.rounds + 1) if n % args.eval_every == 0 or n == args.rounds]
        return tuple(n * args.batch_size for n in evaluated)

    @property
    def references(self) -> dict[str, float]:
        """The fixed scores between which returns are normalised."""
        return {"random": self.random, "solved": self.solved}

    def varied(
        self,
        *,
        env_backend: Backend | None = None,
        eval_episodes: int = 0,
        eval_every: int = 0,
        apply: Apply | None = None,
        checkpoint_every: int = 0,
        corrupt: str = "none",
    ) -> "Task":
        """This task in other circumstances; what differs becomes part of its id.

        Args:
            env_backend: what steps the environments; None for the task's own.
            eval_episodes: episodes an evaluation; 0 for the task's own.
            eval_every: rounds between evaluations; 0 for the task's own.
            apply: how selections are applied; None for each filter's own way.
            checkpoint_every: rounds between checkpoints, where environments start anew; 0 for the task's own.
            corrupt: records made harmful on purpose, KIND:FRACTION; none for as the task says.
        """
        args, env_backend = self.args, env_backend or self.args.env_backend
        episodes, every = eval_episodes or args.eval_episodes, eval_every or args.eval_every
        changes: list[str] = [] if env_backend == args.env_backend else [env_backend]
        if (episodes, every) != (args.eval_episodes, args.eval_every):
            changes.append(f"eval-{episodes}-every-{every}")
        if apply is not None:
            changes.append(apply)
        checkpoint_every = checkpoint_every or args.checkpoint_every
        if checkpoint_every != args.checkpoint_every:
            changes.append(f"checkpoint-{checkpoint_every}")
        corruption = Corruption.parse(corrupt)
        if corruption.fraction:
            changes.append(f"corrupt-{corruption.kind}-{corruption.fraction:g}")
        args = replace(args, env_backend=env_backend, eval_episodes=episodes, eval_every=every)
        args = replace(args, checkpoint_every=checkpoint_every)
        if corruption.fraction:
            args = replace(args, corrupt=f"{corruption.kind}:{corruption.fraction:g}")
        return replace(self, id="@".join([self.id, *changes]), args=args, apply=apply)


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
    own = {"obs_scale": 255.0, "eval_every": 2}
    return ppo_minigrid.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | own | settings))


def iif_continuous(env_id: str, *, rounds: int, **settings: Any) -> ppo_continuous.Args:
    """Settings of the IIF paper for continuous actions."""
    return ppo_continuous.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | settings))


FROZEN_LAKE: dict[str, bool | int | float | str] = {"map_name": "4x4", "is_slippery": False}
DOORKEY = ppo_minigrid.Args(
    env_id="MiniGrid-DoorKey-8x8-v0",
    total_steps=1_000_000,
    num_steps=640,
    minibatch_size=256,
    update_epochs=4,
    optimizer="adam",
    learning_rate=3e-4,
    entropy_coef=0.01,
)
ADAM = {"optimizer": "adam", "adam_eps": 1e-5}
"""Adam as Stable-Baselines3's PPO sets it up"""


def drops(fraction: float, warmup: int = 0) -> dict[str, dict[str, Any]]:
    """IIF's share of the negatives on a task, and the rounds that IIF and DTV let pass at first."""
    late = {name: {"warmup": warmup} for name in ("dtv", "dtv-loo", "dtv-lambda")} if warmup else {}
    return {"iif": {"fraction": fraction} | ({"warmup": warmup} if warmup else {}), **late}


_TASKS = (
    Task(
        id="FrozenLake/v1",
        about="FrozenLake-v1 4x4, not slippery, one-hot; IIF setting, 50 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=50, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="Acrobot/v1",
        about="Acrobot-v1; IIF setting, 50 rounds",
        args=iif_mlp("Acrobot-v1", rounds=50),
        random=-498.4,
        solved=-80.0,
        returns=(-500.0, 0.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="MiniGrid-Empty-8x8/v3",
        about="MiniGrid-Empty-8x8-v0; IIF setting, 40 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=40),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="Highway/v1",
        about="highway-v0 with 10 vehicles; IIF setting, 100 rounds",
        args=iif_mlp("highway-v0", rounds=100, env_kwargs={"vehicles_count": 10}, eval_every=5, eval_episodes=10),
        random=11.40,
        solved=40.0,
        returns=(0.0, 40.0),
        filter_defaults=drops(0.5),
        paper_episodes=100,
    ),
    Task(
        id="LunarLander/v2",
        about="LunarLander-v3; IIF setting, 150 rounds",
        args=iif_mlp("LunarLander-v3", rounds=150, eval_every=4),
        random=-181.7,
        solved=200.0,
        returns=(-10_000.0, 1_000.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="BipedalWalker/v1",
        about="BipedalWalker-v3; IIF setting, Adam 3e-4, 500 rounds",
        args=iif_continuous("BipedalWalker-v3", rounds=500, learning_rate=3e-4, eval_every=5, eval_episodes=10, **ADAM),
        random=-99.4,
        solved=300.0,
        returns=(-2_000.0, 400.0),
        filter_defaults=drops(0.0625),
        paper_episodes=100,
    ),
    Task(
        id="MiniGrid-Empty-8x8-adam/v3",
        about="MiniGrid-Empty-8x8-v0; IIF setting with Adam 3e-4, 40 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=40, learning_rate=3e-4, **ADAM),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="LunarLander-adam/v2",
        about="LunarLander-v3; IIF setting with Adam 1e-3, 150 rounds",
        args=iif_mlp("LunarLander-v3", rounds=150, learning_rate=1e-3, eval_every=4, **ADAM),
        random=-181.7,
        solved=200.0,
        returns=(-10_000.0, 1_000.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="MiniGrid-Empty-8x8-dtv/v1",
        about="MiniGrid-Empty-8x8-v0; DTV setting, 16 environments × 128 steps, 160,000 steps",
        args=ppo_minigrid.Args(),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="MiniGrid-DoorKey-8x8/v1",
        about="MiniGrid-DoorKey-8x8-v0; DTV setting, 16 environments × 640 steps, 1,000,000 steps",
        args=DOORKEY,
        random=0.0108,
        solved=0.97,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125, warmup=5),
    ),
    Task(
        id="Pong/v1",
        about="ALE/Pong-v5, 84×84 frames, no sticky actions; CleanRL's Atari settings, 10,000,000 steps",
        args=ppo_atari.Args(),
        random=-20.32,
        solved=20.0,
        returns=(-21.0, 21.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="CartPole/v2",
        about="CartPole-v1; CleanRL's settings for classic control, 500,000 steps",
        args=ppo.Args(),
        random=22.2,
        solved=500.0,
        returns=(0.0, 500.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="Acrobot-cleanrl/v2",
        about="Acrobot-v1; CleanRL's settings for classic control, 500,000 steps",
        args=ppo.Args(env_id="Acrobot-v1"),
        random=-498.4,
        solved=-80.0,
        returns=(-500.0, 0.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="FrozenLake-quick/v1",
        about="FrozenLake in the IIF setting cut to 20 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=20, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="MiniGrid-Empty-8x8-quick/v3",
        about="MiniGrid-Empty-8x8 in the IIF setting cut to 25 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=25),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="smoke-FrozenLake/v1",
        about="two short rounds of FrozenLake, for tests",
        args=iif_mlp(
            "FrozenLake-v1", rounds=1, env_kwargs=FROZEN_LAKE, num_steps=1024, update_epochs=2, eval_episodes=4
        ),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
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
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
)

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


_WALK = tuple(
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

CORRUPTED = "MiniGrid-Empty-8x8-dtv/v1"
"""the task whose records the suite `corrupt` makes harmful"""
CORRUPTIONS = tuple(f"{kind}:{fraction}" for kind in ("advantage-flip", "reward-flip") for fraction in (0.2, 0.4))


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
    **{task.id: ("envpool", 100, 2) for task in _WALK},
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


def _with_variants(tasks: tuple[Task, ...]) -> dict[str, Task]:
    by_id = {task.id: task for task in tasks}
    variants = [by_id[CORRUPTED].varied(env_backend="gymnasium", corrupt=corrupt) for corrupt in CORRUPTIONS]
    variants += [claim_task(by_id[task_id]) for task_id in CLAIMS]
    variants += [claim_task(by_id[task_id], restart=True) for task_id in RESTARTED]
    variants += [claim_task(by_id[SHOWN], episodes=1000)]
    return by_id | {task.id: task for task in variants}


RESTARTED = ("MiniGrid-Empty-8x8/v3", "LunarLander/v2")
"""the tasks on which the claims runs also start all environments anew before every round"""
SHOWN = "MiniGrid-Empty-8x8/v3"
"""the task on which the claims runs show what the papers' full evaluation changes"""
TASKS: dict[str, Task] = _with_variants(_TASKS + _WALK)


def _claims(*task_ids: str, restart: bool = False, episodes: int = 0) -> tuple[str, ...]:
    return tuple(claim_task(TASKS[task_id], restart=restart, episodes=episodes).id for task_id in task_ids)


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
    "corrupt": (CORRUPTED, *(task_id for task_id in TASKS if task_id.startswith(f"{CORRUPTED}@corrupt"))),
    "claims-settings": _claims("MiniGrid-Empty-8x8/v3", "MiniGrid-Empty-8x8-dtv/v1"),
    "claims-iif": _claims("FrozenLake/v1", "Acrobot/v1", "MiniGrid-Empty-8x8/v3", "Highway/v1", "LunarLander/v2"),
    "claims-walker": _claims("BipedalWalker/v1"),
    "claims-adam": _claims("MiniGrid-Empty-8x8-adam/v3", "LunarLander-adam/v2"),
    "claims-share": _claims("FrozenLake/v1", "MiniGrid-Empty-8x8/v3"),
    "claims-dtv": _claims("MiniGrid-Empty-8x8-dtv/v1"),
    "claims-doorkey": _claims("MiniGrid-DoorKey-8x8/v1"),
    "claims-walk": _claims(*(task.id for task in _WALK)),
    "claims-restart": _claims(*RESTARTED) + _claims(*RESTARTED, restart=True),
    "claims-protocol": _claims(SHOWN, episodes=1000),
}
"""a suite's tasks; the default suite is `quick`"""


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
