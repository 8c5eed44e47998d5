"""What is a task? An environment with every setting that decides the result."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.envs.interface import Backend
from algos.training.corrupt import Corruption
from filters.api import Apply

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
    """the 1 of normalised scores; NaN: the best evaluation that any filter compared reached"""
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
    def references(self) -> dict[str, float | None]:
        """The fixed scores between which returns are normalised; None where only the runs can say."""
        return {"random": self.random, "solved": None if math.isnan(self.solved) else self.solved}

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
