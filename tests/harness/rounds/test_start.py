"""Looks into a run that begin at its checkpoint, or with the policy of a file."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from algos import ppo
from algos.training import checkpoint
from filters.errors import UsageError
from filters.gradients.reference import Reference
from filters.registry import make
from harness.rounds.start import Start, read_start
from harness.rounds.training import Training
from harness.tasks.task import Task

ARGS = ppo.Args(env_id="CartPole-v1", num_envs=2, num_steps=16, minibatch_size=8, total_steps=96, hidden=(5, 3))
TASK = Task("test/v1", "", ARGS, random=0.0, solved=1.0, returns=(-500.0, 500.0))


def test_a_checkpoint_to_start_from(tmp_path: Path) -> None:
    """The round after it is the one that the run itself would have gone on with: network, moments, streams, envs."""
    run = Training(TASK, make("iif"), seed=4)
    run.update(run.collect())
    run.state.restart(run.args)
    checkpoint.save(tmp_path / "checkpoint.pt", run.state, {})
    again = Training(TASK, make("iif"), seed=4, start=read_start(tmp_path / "checkpoint.pt"))
    for number in (2, 3):
        theirs, mine = run.collect(), again.collect()
        assert (theirs.number, mine.number) == (number, number)
        assert torch.equal(theirs.rollout.obs, mine.rollout.obs)
        assert torch.equal(theirs.rollout.actions, mine.rollout.actions)
        assert torch.equal(theirs.rollout.advantages, mine.rollout.advantages)
        assert torch.equal(theirs.selection.keep, mine.selection.keep)
        run.update(theirs)
        again.update(mine)
    other = Training(replace(TASK, args=replace(ARGS, hidden=(4,))), make("iif"), seed=4)
    with pytest.raises(UsageError, match="of another network or optimizer"):
        read_start(tmp_path / "checkpoint.pt").put_into(other.state, other.args)  # type: ignore[union-attr]


def test_a_policy_to_start_from() -> None:
    training = Training(TASK, make("none"), seed=0)
    params = {name: torch.full_like(p, 0.25) for name, p in training.state.agent.named_parameters()}
    one = torch.ones(1)
    policy = Reference("other/v1", params, one, one, one)
    started = Training(TASK, make("none"), seed=0, start=Start(policy=policy))
    assert all(bool((p == 0.25).all()) for p in started.state.agent.parameters())
    with pytest.raises(UsageError, match="another architecture"):
        Start(policy=Reference("other/v1", {"a": one}, one, one, one)).put_into(training.state, training.args)
