"""PPO itself: advantages, bootstrapping, records, exact scores."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.envs.episodes import end_episodes, fragments
from algos.envs.interface import Step
from algos.envs.vector import VectorEnv
from algos.training.recorder import SilentRecorder
from filters.api import Rollout, keep_all
from filters.iif import IIF
from filters.registry import make

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


def test_returns_are_summed_until_an_episode_ends_and_start_at_zero_again() -> None:
    no, blank = np.zeros(3, np.bool_), np.zeros((3, 1))
    running = np.array([1.0, 2.0, 3.0])
    rewards = np.array([0.5, 0.25, -1.0], np.float32)
    terminated, truncated = np.array([True, False, False]), np.array([False, False, True])
    life_lost = np.array([False, True, False])
    assert end_episodes(running, Step(blank, rewards, terminated, truncated, blank, life_lost)) == [1.5, 2.0]
    assert running.tolist() == [0.0, 2.25, 0.0]
    assert end_episodes(running, Step(blank, rewards, no, no, blank, no)) == []
    assert running.tolist() == [0.5, 2.5, -1.0]


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
    batch = module.columns(rollout).normalized()
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
    batch = ppo.columns(rollout).at(torch.arange(10)).normalized()
    assert float(batch.advantages.mean()) == pytest.approx(0, abs=1e-5)
    assert float(batch.advantages.std()) == pytest.approx(1, rel=1e-4)
    assert torch.equal(batch.returns, rollout.returns[:10])


def test_actions_follow_the_policy() -> None:
    """Gumbel-max: over 20,000 draws the frequencies are the softmax of the logits."""
    probabilities = torch.tensor([0.1, 0.2, 0.7])
    actions = ppo.sample(probabilities.log().expand(20_000, 3), torch.Generator().manual_seed(0))
    assert (torch.bincount(actions) / 20_000).tolist() == pytest.approx(probabilities.tolist(), abs=0.015)


def test_gaussian_policy_sums_over_the_action_dimensions() -> None:
    mean, log_std = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([-1.0, 0.0, 0.5])
    actions = ppo_continuous.sample((mean, log_std), torch.Generator().manual_seed(1))
    expected = torch.distributions.Normal(mean, log_std.exp().expand_as(mean))
    torch.testing.assert_close(ppo_continuous.log_prob((mean, log_std), actions), expected.log_prob(actions).sum(1))
    torch.testing.assert_close(ppo_continuous.entropy_of((mean, log_std)), expected.entropy().sum(1))
    many = ppo_continuous.sample((torch.zeros(50_000, 3), log_std), torch.Generator().manual_seed(2))
    assert many.std(0).tolist() == pytest.approx(log_std.exp().tolist(), rel=0.02)


def test_continuous_actions_are_stored_as_drawn_and_clipped_at_the_environment_alone() -> None:
    """Pendulum takes torques in [-2, 2]; a wide policy draws far outside, and log-probabilities are of the draws."""
    args = ppo_continuous.Args(num_steps=200, num_envs=2, minibatch_size=64)
    state = ppo_continuous.open_state(args)
    with torch.no_grad():
        state.agent.log_std.fill_(2.0)
    rollout, _ = ppo_continuous.collect(state, args, SilentRecorder())
    assert float(rollout.actions.abs().max()) > 5
    assert rollout.actions.shape == (400, 1)
    fresh = ppo_continuous.log_prob(state.agent(rollout.obs), rollout.actions)
    torch.testing.assert_close(rollout.logprobs, fresh)
    assert float(rollout.rewards.min()) > -17.3, "the reward's penalty on torque is bounded where torques are clipped"


class OneState(gym.Env[Any, Any]):
    """One state, reward 1 a step, episodes of 5 steps that are truncated, or that terminate."""

    def __init__(self, terminates: bool = False) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.terminates = terminates

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        over = self.steps == 5
        return np.ones(1, np.float32), 1.0, over and self.terminates, over and not self.terminates, {}


gym.register(id="OneState-v0", entry_point=OneState)


@pytest.mark.parametrize("terminates", [False, True])
def test_the_value_of_one_state_in_closed_form(terminates: bool) -> None:
    """Truncation does not change what the state is worth, 1/(1−γ) = 10: a critic that says so sees no advantage.

    Where the episodes terminate, the last step is worth 1 and not 10, and the error runs back within the episode only.
    """
    args = replace(MLP, env_id="OneState-v0", env_kwargs={"terminates": terminates}, gamma=0.9, gae_lambda=0.5)
    args = replace(args, num_envs=1, num_steps=10, minibatch_size=10)
    state = ppo.open_state(args)
    with torch.no_grad():
        for parameter in state.agent.critic.parameters():
            parameter.zero_()
        state.agent.critic[-1].bias.fill_(10.0)
    rollout, _ = ppo.collect(state, args, SilentRecorder())
    last = -9.0 if terminates else 0.0  # δ = 1 − 10
    expected = [last * 0.45**k for k in (4, 3, 2, 1, 0)] * 2
    assert rollout.advantages.tolist() == pytest.approx(expected, abs=1e-5)


class Lives(OneState):
    """A life is lost after the third step of an episode of five; rewards are 5 a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, _ = super().step(action)
        return obs, 5.0, terminated, truncated, {"lives": 2 if self.steps < 3 else 1}


gym.register(id="LostLife-v0", entry_point=Lives)


def test_a_lost_life_cuts_the_advantage_but_not_the_game() -> None:
    args = replace(
        MLP, env_id="LostLife-v0", env_kwargs={"terminates": True}, num_envs=1, num_steps=10, minibatch_size=10
    )
    state = ppo.open_state(args)
    rollout, ended = ppo.collect(state, args, SilentRecorder())
    assert ended == [25.0, 25.0]
    assert rollout.trajectory.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    # the step that loses the life is not bootstrapped: its δ is r − V
    assert float(rollout.td_errors[2]) == pytest.approx(5.0 - float(rollout.values[2]), rel=1e-5)


def test_atari_learns_from_the_signs_of_rewards_and_reports_them_in_full() -> None:
    assert ppo_atari.training_rewards(np.array([-7.0, 0.0, 200.0], np.float32)).tolist() == [-1.0, 0.0, 1.0]
    assert ppo.training_rewards(np.array([-7.0, 200.0])).tolist() == [-7.0, 200.0]


def test_observations_are_scaled_as_documented() -> None:
    """The MiniGrid agent divides by obs_scale, the Atari agent by 255, and the MLP takes vectors as they are."""
    grid = ppo_minigrid.open_state(replace(GRID, obs_scale=255.0)).agent
    raw = ppo_minigrid.open_state(replace(GRID, obs_scale=1.0)).agent
    obs = torch.randint(0, 11, (4, 7, 7, 3), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    torch.testing.assert_close(grid(obs), raw(obs.float() / 255))
    space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    atari = ppo_atari.Agent(space, gym.spaces.Discrete(6), ppo_atari.Args())
    frames = torch.full((2, 4, 84, 84), 255, dtype=torch.uint8)
    torch.testing.assert_close(atari.features(frames), atari.trunk(torch.ones(2, 4, 84, 84)))


@pytest.mark.parametrize(
    ("settings", "kind", "expected"),
    [
        ({"optimizer": "sgd", "learning_rate": 0.1}, torch.optim.SGD, {"lr": 0.1, "momentum": 0, "weight_decay": 0}),
        (
            {"optimizer": "adam", "learning_rate": 0.2, "adam_eps": 1e-7},
            torch.optim.Adam,
            {"lr": 0.2, "eps": 1e-7, "betas": (0.9, 0.999), "weight_decay": 0},
        ),
    ],
)
def test_the_optimizer_is_set_up_as_configured(settings: Any, kind: type, expected: dict[str, Any]) -> None:
    optimizer = ppo.open_state(replace(MLP, **settings)).optimizer
    assert isinstance(optimizer, kind)
    group = optimizer.param_groups[0]
    assert {name: group[name] for name in expected} == expected


def test_one_step_of_plain_sgd_by_hand() -> None:
    """One minibatch that is the whole rollout: the parameters move by −rate · gradient, and the norm is clipped."""
    args = replace(MLP, optimizer="sgd", learning_rate=0.5, num_steps=32, minibatch_size=64, update_epochs=1)
    for max_norm in (0.0, 1e-3):
        args = replace(args, max_grad_norm=max_norm)
        state = ppo.open_state(args)
        rollout, _ = ppo.collect(state, args, SilentRecorder())
        policy_loss, value_loss, entropy = (
            loss.mean()
            for loss in ppo.ppo_losses(state.agent.policy_and_value, ppo.columns(rollout).normalized(), args)
        )
        loss = policy_loss + args.value_coef * value_loss - args.entropy_coef * entropy
        parameters = list(state.agent.parameters())
        before = [p.detach().clone() for p in parameters]
        gradients = torch.autograd.grad(loss, parameters)
        norm = float(torch.cat([g.flatten() for g in gradients]).norm())
        scale = min(1.0, max_norm / norm) if max_norm else 1.0
        ppo.update(state, rollout, keep_all(rollout), "repack", args)
        for old, new, gradient in zip(before, parameters, gradients, strict=True):
            torch.testing.assert_close(new.detach(), old - 0.5 * scale * gradient, rtol=1e-3, atol=1e-6)


def test_the_learning_rate_falls_linearly_to_zero_where_asked() -> None:
    rates: list[float] = []

    class Watch(SilentRecorder):
        def round(self, report: Any) -> None:
            rates.append(WATCHED[-1].optimizer.param_groups[0]["lr"])

    opened = ppo.open_state
    args = replace(MLP, total_steps=4 * MLP.batch_size, learning_rate=1.0, anneal_lr=True, eval_episodes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppo, "open_state", lambda args: WATCHED.append(opened(args)) or WATCHED[-1])
        ppo.train(args, make("none"), Watch())
        ppo.train(replace(args, anneal_lr=False), make("none"), Watch())
    assert rates == [1.0, 0.75, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0]


WATCHED: list[Any] = []


def test_the_network_of_the_iif_paper_has_its_size() -> None:
    """papers: 40,744 parameters, 32,359 of them on the policy's path."""
    agent = ppo_minigrid.open_state(replace(GRID, obs_scale=255.0)).agent
    sizes = {name: p.numel() for name, p in agent.named_parameters()}
    assert sum(sizes.values()) == 40_744
    assert sum(size for name, size in sizes.items() if not name.startswith("critic.")) == 32_359
