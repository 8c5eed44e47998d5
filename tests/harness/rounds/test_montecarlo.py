"""Played futures against closed forms."""

from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo
from filters.registry import make
from harness.rounds.montecarlo import play_advantages, repeated_advantages
from harness.rounds.snapshots import Snapshot, TakeSnapshot
from harness.rounds.training import Training
from harness.tasks.task import Task
from tests.chain_env import LENGTH, closed_form

SETTINGS: dict[str, Any] = {"num_envs": 2, "num_steps": 64, "minibatch_size": 32, "total_steps": 256, "hidden": (8,)}


def train_on(env_id: str, **settings: Any) -> Training:
    args = ppo.Args(env_id=env_id, **(SETTINGS | settings))
    return Training(Task("test/v1", "", args, random=0.0, solved=1.0, returns=(-500.0, 500.0)), make("none"), seed=0)


def test_advantages_of_a_chain_equal_the_closed_form() -> None:
    training = train_on("FilterGymChain-v0", gamma=0.9)
    moment = training.collect(TakeSnapshot())
    rollout = moment.rollout
    records = np.arange(rollout.n)
    found = play_advantages(training, rollout, moment.seen, records, futures=300, seed=1)

    with torch.no_grad():
        right = training.state.agent(torch.eye(LENGTH)).softmax(-1)[:, 1].double().numpy()
    V, Q = closed_form(right, 0.9)
    states, actions = rollout.obs.argmax(-1).numpy(), rollout.actions.numpy()
    assert set(states) == set(range(LENGTH)), "the rollout visits every field"
    expected = Q[states, actions] - V[states]
    assert found.errors is not None
    assert np.all(found.errors < 0.05)
    np.testing.assert_array_less(np.abs(found.advantages - expected), 4 * found.errors + 1e-12)
    assert found.futures == 300
    assert found.steps > 0


def test_records_of_one_state_share_their_futures() -> None:
    training = train_on("FilterGymChain-v0")
    moment = training.collect(TakeSnapshot())
    found = play_advantages(training, moment.rollout, moment.seen, np.arange(moment.rollout.n), futures=8)
    states, actions = moment.rollout.obs.argmax(-1).numpy(), moment.rollout.actions.numpy()
    for s, a in set(zip(states, actions, strict=True)):
        assert len(set(found.advantages[(states == s) & (actions == a)])) == 1
    again = play_advantages(training, moment.rollout, moment.seen, np.arange(moment.rollout.n), futures=8)
    np.testing.assert_array_equal(found.advantages, again.advantages)


def test_a_future_goes_on_from_the_steps_that_its_time_limit_has_counted() -> None:
    """A critic that says 10 everywhere closes a future on its fifth and last step: Q(s, 1) = 9, Q(s, 0) = 0."""
    training = train_on("FilterGymShortChain-v0", gamma=0.9)
    moment = training.collect(TakeSnapshot())
    last: Any = training.state.agent.critic[-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.fill_(10.0)
        right = float(training.state.agent(torch.eye(LENGTH)).softmax(-1)[0, 1])
    columns = {"obs": torch.eye(LENGTH)[:1], "actions": torch.ones(1, dtype=torch.int64)}
    rollout = type(moment.rollout)(**{**vars(moment.rollout), **columns})
    start = next(snapshot for snapshot, obs in zip(moment.seen, moment.rollout.obs, strict=True) if obs[0] == 1)
    snapshot = Snapshot(start.state, elapsed=(4,))
    found = play_advantages(training, rollout, [snapshot], np.array([0]), futures=400)
    assert found.errors is not None
    assert found.advantages[0] == pytest.approx(9 - right * 9, abs=4 * found.errors[0])
    assert found.steps == 800, "one step each"


def test_a_budget_buys_as_many_futures_as_it_can() -> None:
    training = train_on("FilterGymChain-v0")
    moment = training.collect(TakeSnapshot())
    few, many = (
        play_advantages(training, moment.rollout, moment.seen, np.arange(20), budget=budget) for budget in (1, 3000)
    )
    assert few.futures == 4
    assert many.futures > 16
    assert many.steps <= 3000


def test_states_that_repeat_give_advantages_where_actions_differ() -> None:
    """Two visits of one state, one with each action, and a state that comes once."""
    training = train_on("CartPole-v1", num_envs=1, num_steps=3, minibatch_size=2, total_steps=3)
    rollout = training.collect().rollout
    columns = {
        "obs": torch.tensor([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [2.0, 0, 0, 0]]),
        "actions": torch.tensor([0, 1, 0]),
        "trajectory": torch.tensor([0, 1, 2]),
        "td_errors": torch.tensor([3.0, 1.0, 7.0]),
        "values": torch.zeros(3),
    }
    found = repeated_advantages(type(rollout)(**{**vars(rollout), **columns}))
    assert found.records.tolist() == [0, 1]
    np.testing.assert_allclose(found.advantages, [1.0, -1.0])
    assert "can't be set to a state" in found.how
