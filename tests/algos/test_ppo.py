"""PPO itself: advantages, bootstrapping, records, exact scores."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from algos import ppo, ppo_minigrid
from algos.envs import VectorEnv, fragments
from algos.recorder import SilentRecorder
from filters.api import Rollout
from filters.iif import IIF

MLP = ppo.Args(env_id="Acrobot-v1", num_envs=2, num_steps=32, minibatch_size=16, total_steps=128)
GRID = ppo_minigrid.Args(num_envs=2, num_steps=32, minibatch_size=16, total_steps=128, hidden=(64, 64))
AGENTS = [pytest.param(ppo, MLP, id="mlp"), pytest.param(ppo_minigrid, GRID, id="conv")]
SHARED = pytest.param(ppo_minigrid, replace(GRID, hidden=()), id="conv-linear-heads")


class Corridor(gym.Env[Any, Any]):
    """Observes the step number; every episode ends after `length` steps, truncated or terminated in turn."""

    def __init__(self, length: int = 3) -> None:
        self.observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length = length
        self.episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.step_number = 0
        self.episodes += 1
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.step_number += 1
        ended = self.step_number == self.length
        obs = np.full(1, self.step_number + 10 * self.episodes, np.float32)
        return obs, float(self.step_number), ended and self.episodes % 2 == 0, ended and self.episodes % 2 == 1, {}


gym.register(id="Corridor-v0", entry_point=Corridor)


def slow_gae(
    rewards: Any, values: Any, next_values: Any, terminated: Any, truncated: Any, gamma: float, lam: float
) -> np.ndarray[Any, Any]:
    """Σ_k (γλ)^k δ_{t+k}, the sum written out for every record until its episode ends."""
    T, N = rewards.shape
    out = np.zeros((T, N))
    for i in range(N):
        for t in range(T):
            weight = 1.0
            for k in range(t, T):
                value = 0.0 if terminated[k, i] else next_values[k, i]
                out[t, i] += weight * (rewards[k, i] + gamma * value - values[k, i])
                if terminated[k, i] or truncated[k, i]:
                    break
                weight *= gamma * lam
    return out


def random_arrays(T: int = 12, N: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    terminated, truncated = np.zeros((2, T, N), np.bool_)
    terminated[4, 0] = truncated[7, 0] = truncated[2, 1] = terminated[11, 2] = True
    return [*rng.normal(size=(3, T, N)), terminated, truncated]


def test_gae_against_the_sum_written_out() -> None:
    arrays = random_arrays()
    args = replace(MLP, gamma=0.9, gae_lambda=0.8)
    assert np.allclose(ppo.gae(*arrays, args)[0], slow_gae(*arrays, 0.9, 0.8), rtol=1e-12)


def test_gae_with_lambda_1_is_the_return_minus_the_value() -> None:
    rewards, values, _, terminated, truncated = random_arrays()
    next_values = np.concatenate([values[1:], np.zeros_like(values[:1])])
    truncated[:] = False
    advantages, _ = ppo.gae(
        rewards, values, next_values, terminated, truncated, replace(MLP, gamma=1.0, gae_lambda=1.0)
    )
    # environment 2 terminates in its last step, so its returns need no bootstrap
    assert np.allclose(advantages[:, 2], rewards[::-1, 2].cumsum()[::-1] - values[:, 2])


def collect(module: ModuleType, args: Any, dtype: torch.dtype = torch.float32) -> tuple[Any, Rollout]:
    state = module.open_state(args)
    rollout, _ = module.collect(state, args, SilentRecorder())
    if dtype == torch.float64:
        state.agent.double()
        floats = ("obs", "logprobs", "values", "rewards", "advantages", "returns", "td_errors")
        rollout = replace(
            rollout, **{n: t.double() for n in floats if (t := getattr(rollout, n)).dtype == torch.float32}
        )
        with torch.no_grad():
            rollout = replace(rollout, logprobs=module.log_prob(state.agent(rollout.obs), rollout.actions))
    return state.agent, rollout


def test_rollout_bootstraps_truncation_and_not_termination() -> None:
    """Corridor episodes have rewards 1, 2, 3; the first is truncated and the second terminates."""
    args = replace(MLP, env_id="Corridor-v0", num_envs=1, num_steps=8, minibatch_size=8, gae_lambda=1.0, gamma=0.9)
    agent, rollout = collect(ppo, args)

    def value(number: int) -> float:
        with torch.no_grad():
            return float(agent.policy_and_value(torch.tensor([[float(number)]]))[1])

    assert rollout.obs.flatten().tolist() == [0, 11, 12, 0, 21, 22, 0, 31]
    expected = [
        1 + 0.9 * 2 + 0.81 * 3 + 0.729 * value(13),  # truncated in the state 13
        2 + 0.9 * 3 + 0.81 * value(13),
        3 + 0.9 * value(13),
        1 + 0.9 * 2 + 0.81 * 3,  # terminated
        2 + 0.9 * 3,
        3,
        1 + 0.9 * 2 + 0.81 * value(32),  # cut by the end of the rollout
        2 + 0.9 * value(32),
    ]
    assert rollout.returns.tolist() == pytest.approx(expected, rel=1e-5)
    assert rollout.trajectory.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_no_record_is_a_mere_reset() -> None:
    """Every record's reward answers its own action: the corridor pays 1, 2, 3, 1, 2, 3, … without a gap."""
    args = replace(MLP, env_id="Corridor-v0", num_envs=2, num_steps=9, minibatch_size=8)
    _, rollout = collect(ppo, args)
    assert rollout.rewards.reshape(9, 2)[:, 0].tolist() == [1, 2, 3] * 3


def test_vector_environment_shows_the_final_and_the_next_first_observation() -> None:
    envs = VectorEnv("Corridor-v0", 1, {"length": 2})
    assert envs.reset([0]).tolist() == [[0]]
    first, last = envs.step(np.zeros(1, np.int64)), envs.step(np.zeros(1, np.int64))
    assert (first.obs.tolist(), first.final_obs.tolist()) == ([[11]], [[11]])
    assert (last.obs.tolist(), last.final_obs.tolist(), last.truncated.tolist()) == ([[0]], [[12]], [True])
    assert not last.terminated.any()


def test_fragments_are_cut_at_episode_ends_environment_by_environment() -> None:
    done = np.array([[0, 0], [1, 0], [0, 0], [0, 1]], np.bool_)
    assert fragments(done).tolist() == [[0, 2], [0, 2], [1, 2], [1, 2]]


@pytest.mark.parametrize(("module", "args"), [*AGENTS, SHARED])
def test_iif_scores_equal_brute_force_gradients(module: ModuleType, args: Any) -> None:
    """⟨∇f_return, −∇ℓ_i⟩ with one backward pass a record, in float64, the losses written out here once more."""
    agent, rollout = collect(module, args, torch.float64)
    scores = IIF().score(rollout, module.open_objective(agent, rollout, args))

    path = [p for name, p in agent.named_parameters() if not name.startswith("critic.")]
    logprob = torch.log_softmax(agent(rollout.obs), -1)[torch.arange(rollout.n), rollout.actions]
    f_return = (logprob * rollout.advantages).mean()
    normalized = (rollout.advantages - rollout.advantages.mean()) / (rollout.advantages.std() + 1e-8)

    def gradient(scalar: torch.Tensor) -> torch.Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(scalar, path, retain_graph=True)])

    ascent = gradient(f_return)
    brute = torch.stack([ascent @ gradient(normalized[i] * logprob[i]) for i in range(rollout.n)])
    error = (scores - brute).abs().max() / brute.abs().max()
    assert float(error) < 1e-9
    assert bool((brute < 0).any())
    assert bool((brute > 0).any())


@pytest.mark.parametrize(("module", "args"), [*AGENTS, SHARED])
def test_the_objective_is_the_loss_of_the_update(module: ModuleType, args: Any) -> None:
    """Same formula: the gradient of the objective's mean is the policy part of the first update's gradient."""
    agent, rollout = collect(module, args, torch.float64)
    objective = module.open_objective(agent, rollout, args)
    batch = module.columns(rollout).at(torch.arange(rollout.n))
    policy_loss, _, _ = module.ppo_losses(agent.policy_and_value, batch, args)
    policy_loss.mean().backward()
    found = torch.func.grad(lambda params: objective.per_record(params).mean())(objective.params)
    for name, parameter in agent.named_parameters():
        if name.startswith("critic."):
            assert parameter.grad is None
        else:
            assert torch.allclose(found[name], parameter.grad, rtol=1e-10, atol=1e-14)


def test_losses_by_hand() -> None:
    """Ratios 1.5 and 0.5: clipped at 1.2 where the advantage would gain, not clipped where it would lose."""
    logits = torch.log(torch.tensor([[0.6, 0.4], [0.2, 0.8]]))
    batch = ppo.Batch(
        obs=torch.zeros(2, 1),
        actions=torch.tensor([0, 0]),
        logprobs=torch.log(torch.tensor([0.4, 0.4])),
        advantages=torch.tensor([2.0, 2.0]),
        returns=torch.tensor([1.0, 3.0]),
        values=torch.tensor([0.0, 0.0]),
    )

    def policy(obs: torch.Tensor) -> Any:
        return logits, torch.tensor([0.5, 1.0])

    args = replace(MLP, clip_value_loss=False)
    policy_loss, value_loss, entropy = ppo.ppo_losses(policy, batch, args)
    assert policy_loss.tolist() == pytest.approx([-2.4, -1.0])
    assert value_loss.tolist() == pytest.approx([0.25, 4.0])
    assert entropy.tolist() == pytest.approx([0.6730117, 0.5004024])
    clipped = ppo.ppo_losses(policy, batch, replace(MLP, clip_value_loss=True))[1]
    assert clipped.tolist() == pytest.approx([0.64, 2.8**2])  # values move at most 0.2 from 0


def test_a_minibatch_normalises_its_own_advantages() -> None:
    _, rollout = collect(ppo, MLP)
    batch = ppo.columns(rollout).at(torch.arange(10))
    assert float(batch.advantages.mean()) == pytest.approx(0, abs=1e-5)
    assert float(batch.advantages.std()) == pytest.approx(1, rel=1e-4)
    assert torch.equal(batch.returns, rollout.returns[:10])


def test_actions_follow_the_policy() -> None:
    """Gumbel-max: over 20,000 draws the frequencies are the softmax of the logits."""
    probabilities = torch.tensor([0.1, 0.2, 0.7])

    def agent(obs: torch.Tensor) -> torch.Tensor:
        return probabilities.log().expand(len(obs), 3)

    actions = ppo.act(agent, torch.zeros(20_000, 1), torch.Generator().manual_seed(0))  # type: ignore[arg-type]
    assert (torch.bincount(actions) / 20_000).tolist() == pytest.approx(probabilities.tolist(), abs=0.015)


def test_the_network_of_the_iif_paper_has_its_size() -> None:
    """papers: 40,744 parameters, 32,359 of them on the policy's path."""
    agent = ppo_minigrid.open_state(replace(GRID, obs_scale=255.0)).agent
    sizes = {name: p.numel() for name, p in agent.named_parameters()}
    assert sum(sizes.values()) == 40_744
    assert sum(size for name, size in sizes.items() if not name.startswith("critic.")) == 32_359
