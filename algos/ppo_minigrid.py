"""How does PPO with a data filter learn from the symbolic image of a grid?

collect [T, N] ──flatten──▶ Rollout [n] ──filter──▶ Selection.keep [n] ──▶ update on the kept records

python -m algos.ppo_minigrid --env-id MiniGrid-Empty-8x8-v0 --filter iif
"""

import sys
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from torch import Tensor, nn

from algos.envs.episodes import end_episodes, fragments
from algos.envs.vector import make_vector_env
from algos.training.acting import EnvEvaluation, EnvState, tensor
from algos.training.alone import make_command
from algos.training.compiled import Compile
from algos.training.corrupt import Corruption
from algos.training.finite import check_advantages, check_parameters, mean_losses
from algos.training.loop import Loop
from algos.training.recorder import Recorder
from algos.training.settings import check_settings
from algos.training.streams import network_stream
from filters.api import Filter, Objective, Params, Rollout, Selection, minibatches, run_filter
from filters.errors import UsageError, run_command

LOSSES = ("policy_loss", "value_loss", "entropy")


@dataclass(frozen=True)
class Args:
    """Settings of PPO; the defaults are those of the DTV paper on MiniGrid-Empty-8x8."""

    env_id: str = "MiniGrid-Empty-8x8-v0"
    """Gymnasium id of the environment"""
    env_kwargs: dict[str, bool | int | float | str] = field(default_factory=dict)
    """keyword arguments for the environment"""
    env_backend: Literal["gymnasium", "envpool"] = "gymnasium"
    """what steps the environments; results of different backends are never compared"""
    seed: int = 0
    """seed of the run; every random stream is spawned from it"""
    device: Literal["cpu", "cuda"] = "cpu"
    """where networks and updates live"""
    compile: Compile = "auto"
    """compile the optimizer step; auto does where it pays"""
    total_steps: int = 160_000
    """environment steps to train for; the last round is finished"""
    num_envs: int = 16
    """N, environments side by side"""
    num_steps: int = 128
    """T, steps a round in each environment"""
    minibatch_size: int = 64
    """records a minibatch"""
    update_epochs: int = 10
    """passes over the rollout in each update"""
    optimizer: Literal["adam", "sgd"] = "sgd"
    """sgd is plain, without momentum"""
    learning_rate: float = 5e-3
    """learning rate at the start"""
    adam_eps: float = 1e-8
    """Adam's epsilon"""
    anneal_lr: bool = False
    """let the learning rate fall linearly to zero over the rounds"""
    gamma: float = 0.99
    """discount factor"""
    gae_lambda: float = 0.95
    """λ of generalised advantage estimation"""
    clip_coef: float = 0.2
    """ε of the clipped surrogate objective"""
    clip_value_loss: bool = False
    """clip the value loss like the policy loss"""
    entropy_coef: float = 0.0
    """weight of the entropy bonus"""
    value_coef: float = 0.5
    """weight of the mean squared value error"""
    max_grad_norm: float = 0.5
    """largest norm of a minibatch's gradient; 0 switches clipping off"""
    eval_every: int = 4
    """rounds between evaluations; the last round is always evaluated"""
    eval_episodes: int = 20
    """episodes an evaluation"""
    checkpoint_every: int = 0
    """rounds between checkpoints, where all environments start new episodes, so it decides the result; 0: none"""
    corrupt: str = "none"
    """make records harmful on purpose, KIND:FRACTION (see algos/training/corrupt.py); evaluation is never touched"""
    obs_scale: float = 10.0
    """what the symbols 0..10 of the grid are divided by; 255 in the IIF paper, not stated in the DTV paper"""
    hidden: tuple[int, ...] = ()
    """widths of separate tanh layers for policy and value behind the shared trunk; none: linear heads"""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def batch_size(self) -> int:
        """n = T·N, records a round."""
        return self.num_steps * self.num_envs

    @property
    def rounds(self) -> int:
        """Rounds until total_steps are reached."""
        return -(-self.total_steps // self.batch_size)


class Agent(nn.Module):
    """A convolutional trunk shared by policy and value: conv 3×3 (16), conv 3×3 (32), linear 64, each with ReLU."""

    def __init__(self, obs_space: gym.Space[Any], action_space: gym.Space[Any], args: Args) -> None:
        super().__init__()
        shape = obs_space.shape or ()
        if not isinstance(action_space, gym.spaces.Discrete) or len(shape) != 3 or min(shape[:2]) < 5:
            raise UsageError(
                f"algos.ppo_minigrid takes grids and discrete actions, {args.env_id} has {obs_space}, {action_space}"
            )
        self.obs_scale = args.obs_scale
        self.trunk = nn.Sequential(
            layer_init(nn.Conv2d(shape[2], 16, 3)),
            nn.ReLU(),
            layer_init(nn.Conv2d(16, 32, 3)),
            nn.ReLU(),
            nn.Flatten(),
            layer_init(nn.Linear(32 * (shape[0] - 4) * (shape[1] - 4), 64)),
            nn.ReLU(),
        )
        self.actor = mlp((64, *args.hidden), int(action_space.n), out_std=0.01)
        self.critic = mlp((64, *args.hidden), 1, out_std=1.0)

    def features(self, obs: Tensor) -> Tensor:
        """Trunk features [n, 64] of grids [n, H, W, C]."""
        pixels = obs.permute(0, 3, 1, 2).to(next(self.parameters()).dtype) / self.obs_scale
        return self.trunk(pixels)

    def forward(self, obs: Tensor) -> Tensor:
        """Action logits [n, A]."""
        return self.actor(self.features(obs))

    def policy_and_value(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Action logits [n, A] and values [n]."""
        features = self.features(obs)
        return self.actor(features), self.critic(features).squeeze(-1)


def mlp(sizes: tuple[int, ...], out: int, out_std: float) -> nn.Sequential:
    """Linear layers with tanh between them, orthogonally initialised."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [layer_init(nn.Linear(fan_in, fan_out)), nn.Tanh()]
    return nn.Sequential(*layers, layer_init(nn.Linear(sizes[-1], out), std=out_std))


def layer_init(layer: nn.Linear | nn.Conv2d, std: float = 2**0.5) -> nn.Linear | nn.Conv2d:
    """Orthogonal weights of gain `std`, zero bias."""
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Batch(NamedTuple):
    """The columns of a rollout that the loss reads, each [m, …]."""

    obs: Tensor
    actions: Tensor
    logprobs: Tensor
    advantages: Tensor
    returns: Tensor
    values: Tensor

    def at(self, index: Tensor) -> "Batch":
        """The records of these numbers, in this order."""
        return Batch(*(column[index] for column in self))

    def normalized(self) -> "Batch":
        """The same records, their advantages shifted and scaled among themselves to mean 0, standard deviation 1."""
        return self._replace(advantages=(self.advantages - self.advantages.mean()) / (self.advantages.std() + 1e-8))


def columns(rollout: Rollout) -> Batch:
    """The rollout as a batch of all its records."""
    return Batch(*(getattr(rollout, name) for name in Batch._fields))


def sample(logits: Tensor, rng: torch.Generator) -> Tensor:
    """Draw actions [m] from the policy: the largest of logits [m, A] + Gumbel noise."""
    return (logits - torch.empty_like(logits).exponential_(generator=rng).log()).argmax(-1)


def log_prob(logits: Tensor, actions: Tensor) -> Tensor:
    """log π(a|s) [m] of actions [m] under logits [m, A]."""
    return logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def entropy_of(logits: Tensor) -> Tensor:
    """Entropy [m] of the policy, in nats."""
    logps = logits.log_softmax(-1)
    return -(logps.exp() * logps).sum(-1)


def training_rewards(rewards: NDArray[Any]) -> NDArray[Any]:
    """The rewards to learn from: as they come."""
    return rewards


def ppo_losses(policy: Any, batch: Batch, args: Args) -> tuple[Tensor, Tensor, Tensor]:
    """The un-averaged losses of a batch: policy [m], value [m], entropy [m].

    `policy` maps obs to (distribution, values): the agent's, or a function of other parameters. Both the update and the
    filters' Objective call this one formula (Schulman et al. 2017, eq. 7 and 9).
    """
    distribution, values = policy(batch.obs)
    ratio = (log_prob(distribution, batch.actions) - batch.logprobs).exp()
    clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
    policy_loss = torch.max(-batch.advantages * ratio, -batch.advantages * clipped)

    value_loss = (values - batch.returns).square()
    if args.clip_value_loss:
        near = batch.values + (values - batch.values).clamp(-args.clip_coef, args.clip_coef)
        value_loss = torch.max(value_loss, (near - batch.returns).square())

    return policy_loss, value_loss, entropy_of(distribution)


def open_objective(agent: Agent, rollout: Rollout, args: Args) -> Objective:
    """The agent's policy loss and f_return on this rollout, as functions of the policy's parameters."""
    params = {name: p.detach() for name, p in agent.named_parameters() if not name.startswith("critic.")}
    batch = columns(rollout)

    def distribution(params: Params, obs: Tensor) -> Any:
        return torch.func.functional_call(agent, params, (obs,))

    def per_record(params: Params) -> Tensor:
        return ppo_losses(lambda obs: (distribution(params, obs), batch.values), batch.normalized(), args)[0]

    def logprob(params: Params, obs: Tensor, actions: Tensor) -> Tensor:
        return log_prob(distribution(params, obs), actions)

    def target(params: Params) -> Tensor:
        return -(logprob(params, batch.obs, batch.actions) * batch.advantages).mean()

    return Objective(params=params, per_record=per_record, target=target, logprob=logprob)


def gae(
    rewards: NDArray[Any],
    values: NDArray[Any],
    next_values: NDArray[Any],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    args: Args,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Generalised advantage estimation, Â_t = δ_t + γλ Â_{t+1} with δ_t = r_t + γ V(s_{t+1}) − V(s_t).

    Returns Â and δ. All arrays are [T, N]. `next_values` holds V of the observation that the action led to, also at an
    episode's end: a truncated episode is bootstrapped with it, a terminated one is not, and the sum is cut at both.
    Source: Schulman et al. 2016, arXiv 1506.02438, eq. 16.
    """
    deltas = rewards + args.gamma * next_values * ~terminated - values
    decay = args.gamma * args.gae_lambda * ~(terminated | truncated)
    advantages = np.zeros_like(deltas)
    following = np.zeros_like(deltas[0])
    for t in reversed(range(len(deltas))):
        advantages[t] = following = deltas[t] + decay[t] * following
    return advantages, deltas


def open_state(args: Args) -> EnvState:
    """Environments, network and random streams at the start of a run; nothing global is seeded."""
    envs = make_vector_env(args.env_id, args.num_envs, args.env_kwargs, args.env_backend)
    with network_stream(args.seed):
        agent = Agent(envs.obs_space, envs.action_space, args).to(args.device)
    return EnvState.begin(args, envs, agent, step=optimizer_step, batch=Batch)


def collect(state: EnvState, args: Args, recorder: Recorder) -> tuple[Rollout, list[float]]:
    """Play T steps in N environments. Returns the rollout [n] and the returns of the episodes that ended in it.

    Leaves in `state.corrupted` which of the records were made harmful on purpose.
    """
    clock, (T, N) = recorder.clock, (args.num_steps, args.num_envs)
    obs = np.zeros((T, N, *state.obs.shape[1:]), state.obs.dtype)
    final_obs = np.zeros_like(obs)
    actions = np.zeros((T, N, *(state.envs.action_space.shape or ())), state.envs.action_space.dtype)
    rewards = np.zeros((T, N), np.float32)
    terminated, truncated = np.zeros((T, N), np.bool_), np.zeros((T, N), np.bool_)
    ended: list[float] = []
    for t in range(T):
        clock.start("inference")
        obs[t] = state.obs
        with torch.inference_mode():
            distribution = state.calls.policy(tensor(state.obs, args.device))
            actions[t] = sample(distribution, state.rngs["action"]).cpu().numpy()
        clock.start("environment")
        step = state.envs.step(actions[t])
        state.obs, final_obs[t], rewards[t] = step.obs, step.final_obs, training_rewards(step.rewards)
        # A lost life ends what can be earned with it, but not the game.
        terminated[t], truncated[t] = step.terminated | step.life_lost, step.truncated
        ended += end_episodes(state.episode_returns, step)

    clock.start("inference")
    done = terminated | truncated
    trajectory = fragments(done)
    corrupted = state.corrupted = Corruption.parse(args.corrupt).open(state.corruption, state.round, trajectory)
    actions, rewards = corrupted.actions(actions, state.envs.action_space), corrupted.rewards(rewards)
    b_obs = tensor(obs.reshape(T * N, *obs.shape[2:]), args.device)  # [n, *obs]
    b_actions = torch.as_tensor(actions.reshape(T * N, *actions.shape[2:])).to(args.device)  # [n, *act]
    last = done.copy()
    last[-1] = True
    with torch.no_grad():
        distribution, b_values = state.agent.policy_and_value(b_obs)
        b_logprobs = log_prob(distribution, b_actions)
        values = b_values.cpu().numpy().reshape(T, N)
        next_values = np.concatenate([values[1:], np.zeros_like(values[:1])])
        next_values[last] = state.agent.policy_and_value(tensor(final_obs[last], args.device))[1].cpu().numpy()
    advantages, deltas = gae(rewards, values, next_values, terminated, truncated, args)
    check_advantages(advantages, state.round)
    b_returns = tensor(advantages.reshape(T * N), args.device) + b_values
    b_advantages = tensor(corrupted.advantages(advantages).reshape(T * N), args.device)
    rollout = Rollout(
        obs=b_obs,
        actions=b_actions,
        logprobs=b_logprobs,
        values=b_values,
        rewards=tensor(rewards.reshape(T * N), args.device),
        advantages=b_advantages,
        returns=b_returns,
        td_errors=tensor(deltas.reshape(T * N), args.device),
        trajectory=torch.as_tensor(trajectory.reshape(T * N)).to(args.device),
        gamma=args.gamma,
        round=state.round,
        generator=state.rngs["filter"],
    )
    return rollout, ended


def optimizer_step(agent: Agent, optimizer: torch.optim.Optimizer, mb: Batch, args: Args) -> Tensor:
    """One step down the loss of a minibatch. Returns the means of its losses [3]."""
    mb_losses = ppo_losses(agent.policy_and_value, mb.normalized(), args)
    losses = torch.stack([loss.mean() for loss in mb_losses])
    policy_loss, value_loss, entropy = losses
    loss = policy_loss + args.value_coef * value_loss - args.entropy_coef * entropy
    optimizer.zero_grad()
    loss.backward()
    if args.max_grad_norm:
        nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
    optimizer.step()
    return losses.detach()


def update(state: EnvState, rollout: Rollout, selection: Selection, apply: Any, args: Args) -> tuple[Tensor, int]:
    """The PPO epochs on the kept records. Returns the losses summed over the minibatches [3] and their number."""
    b_records = columns(rollout)
    sums = torch.zeros(len(LOSSES), device=args.device)
    steps = 0
    for _ in range(args.update_epochs):
        order = torch.randperm(rollout.n, generator=state.rngs["minibatch"], device=args.device)
        chunks = minibatches(order, selection.keep, args.minibatch_size, apply)
        if not chunks:
            continue
        epoch = b_records.at(torch.cat(chunks))  # one gather an epoch; the minibatches are views of it
        for mb in zip(*(column.split([len(chunk) for chunk in chunks]) for column in epoch), strict=True):
            sums += state.calls.step(Batch(*mb))
            steps += 1
    return sums, steps


def train(args: Args, filter: Filter, recorder: Recorder, apply: Any = None) -> Agent:
    """Train for `args.rounds` rounds and return the agent.

    Args:
        args: every setting.
        filter: decides each round which records the update may use.
        recorder: is told of every round and evaluation, and keeps the clock.
        apply: `repack` or `mask`; the filter's own way if None.

    Raises:
        FilterError: the filter broke its contract.
        TrainingError: a loss is not finite.
    """
    clock = recorder.clock
    clock.start("startup")
    state = open_state(args)
    loop = Loop(state, args, recorder, EnvEvaluation(state, sample, args))
    while loop.goes_on():
        if args.anneal_lr:
            state.optimizer.param_groups[0]["lr"] = (1 - state.round / args.rounds) * args.learning_rate
        rollout, ended = collect(state, args, recorder)

        clock.start("filter")
        selection = run_filter(filter, rollout, open_objective(state.agent, rollout, args), state.agent)

        clock.start("update")
        sums, steps = update(state, rollout, selection, apply or filter.apply, args)
        losses = mean_losses(sums, steps, LOSSES, state.round)
        check_parameters(state.agent, state.round)

        loop.report(
            selection=selection,
            trajectory=rollout.trajectory,
            optimizer_steps=steps,
            losses=losses,
            returns=ended,
            corrupted=state.corrupted,
        )
    loop.close()
    return state.agent


main = make_command(train, Args)

if __name__ == "__main__":
    sys.exit(run_command(lambda: tyro.cli(main)))
