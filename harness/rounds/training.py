"""How does an agent come to a round, and what would that round's update have made of other records?"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from algos.envs.interface import Step
from algos.training.finite import mean_losses
from algos.training.recorder import SilentRecorder
from filters.api import Apply, Filter, Objective, Params, Rollout, Selection, keep_all, run_filter
from harness.rounds.start import Start
from harness.tasks.task import Task


@dataclass(frozen=True)
class Moment:
    """A round between its collection and its update."""

    number: int
    """1-based, as in the evaluations of a run: round k trains on the k-th rollout"""
    rollout: Rollout
    objective: Objective
    selection: Selection
    seen: list[Any]
    """[n] what `see` returned before each record's action; empty without"""
    train_return: float | None
    """mean return of the episodes that ended in the rollout"""

    @property
    def record_scores(self) -> Tensor | None:
        """[n] the filter's scores, a trajectory's for each of its records; None if the filter gave none."""
        scores = self.selection.scores
        if scores is None or scores.shape[0] == self.rollout.n:
            return scores
        return scores[self.rollout.trajectory]


class Training:
    """A run of a task that stops before every update.

    Evaluations draw from streams of their own, so without them the parameters of every round are those of the same
    cell of `python -m harness.run`, byte for byte where that one does not compile its optimizer step.

    Args:
        task: what to train on.
        filter: what the updates use.
        seed: the run's seed.
        start: where to begin instead of with fresh parameters. After a checkpoint everything is as in its run, where
            that one does not compile; rounds count on, and the environments start anew there as they did in the run.
    """

    def __init__(self, task: Task, filter: Filter, *, seed: int, start: Start | None = None) -> None:
        self.task, self.filter, self.module = task, filter, task.module
        self.args = replace(task.args, seed=seed, compile="off")  # too few updates to repay compiling
        self.state: Any = self.module.open_state(self.args)
        self.recorder = SilentRecorder()
        if start is not None:
            start.put_into(self.state, self.args)

    @property
    def apply(self) -> Apply:
        """How selections are applied."""
        return self.task.apply or self.filter.apply

    def collect(self, see: "See | None" = None) -> Moment:
        """Play the next round's rollout and score it; `see` looks at an environment before each of its steps."""
        state, args = self.state, self.args
        if args.anneal_lr:
            state.optimizer.param_groups[0]["lr"] = (1 - state.round / args.rounds) * args.learning_rate
        envs, watched = state.envs, WatchedEnvs(state.envs, see) if see else None
        state.envs = watched or envs
        try:
            rollout, ended = self.module.collect(state, args, self.recorder)
        finally:
            state.envs = envs
        objective = self.module.open_objective(state.agent, rollout, args)
        return Moment(
            number=state.round + 1,
            rollout=rollout,
            objective=objective,
            selection=run_filter(self.filter, rollout, objective, self.state.agent),
            seen=watched.seen if watched else [],
            train_return=float(np.mean(ended)) if ended else None,
        )

    def update(self, moment: Moment) -> None:
        """Make the round's own update; the next `collect` is the next round's."""
        sums, steps = self.module.update(self.state, moment.rollout, moment.selection, self.apply, self.args)
        mean_losses(sums, steps, self.module.LOSSES, self.state.round)
        self.state.round += 1

    def update_on_all(self, moment: Moment) -> None:
        """Make the ordinary update of the round instead of the filtered one."""
        self.update(replace(moment, selection=keep_all(moment.rollout)))

    @contextmanager
    def counterfactual_update(self, moment: Moment, keep: Tensor) -> Iterator[int]:
        """The agent as an update on the records `keep` [n] would leave it; afterwards all is as it was before.

        Parameters, the optimizer's state and every random stream come back, so each counterfactual of a round starts
        from the same parameters and goes through the records in the same order. Yields the number of optimizer steps.
        """
        state = self.state
        tensors = [*state.agent.parameters(), *state.agent.buffers()]
        before = [tensor.detach().clone() for tensor in tensors]
        streams = {name: rng.get_state() for name, rng in state.rngs.items()}
        moments = {p: {k: v.clone() for k, v in inner.items()} for p, inner in state.optimizer.state.items()}
        try:
            yield self.module.update(state, moment.rollout, Selection(keep=keep), self.apply, self.args)[1]
        finally:
            with torch.no_grad():
                for tensor, old in zip(tensors, before, strict=True):
                    tensor.copy_(old)
                for p, inner in state.optimizer.state.items():
                    for name, value in inner.items():  # zero is how the optimizer starts
                        value.copy_(moments[p][name]) if p in moments else value.zero_()
            for name, rng in state.rngs.items():
                rng.set_state(streams[name])

    def params(self, names: Params) -> Params:
        """The agent's parameters as they are now, those of the given names."""
        now = dict(self.state.agent.named_parameters())
        return {name: now[name].detach() for name in names}

    def act(self, rng: torch.Generator) -> Any:
        """The current policy as a function from observations to actions, drawing from `rng`."""
        module, agent, device = self.module, self.state.agent, self.args.device

        def act(obs: NDArray[Any]) -> NDArray[Any]:
            with torch.inference_mode():
                actions: Tensor = module.sample(agent(module.tensor(obs, device)), rng)
            drawn: NDArray[Any] = actions.cpu().numpy()
            return drawn

        return act

    def values(self, obs: NDArray[Any]) -> NDArray[Any]:
        """V [m] of observations [m, *obs]."""
        with torch.inference_mode():
            values: Tensor = self.state.agent.policy_and_value(self.module.tensor(obs, self.args.device))[1]
        numbers: NDArray[Any] = values.cpu().numpy()
        return numbers

    def close(self) -> None:
        """Close the environments."""
        self.state.envs.close()


class See:
    """Looks at one environment before it acts; subclasses say what they take down."""

    def __call__(self, env: gym.Env[Any, Any]) -> Any:
        """What to keep of the environment's state; must not change it."""
        raise NotImplementedError


class WatchedEnvs:
    """The environments of a rollout, each looked at before every step; record i is entry i of `seen`."""

    def __init__(self, envs: Any, see: See) -> None:
        self.envs, self.see = envs, see
        self.num_envs, self.obs_space, self.action_space = envs.num_envs, envs.obs_space, envs.action_space
        self.seen: list[Any] = []

    def step(self, actions: NDArray[Any]) -> Step:
        """Look, then act."""
        self.seen += [self.see(env) for env in self.envs.envs.envs]
        step: Step = self.envs.step(actions)
        return step
