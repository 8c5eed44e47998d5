"""How does PPO with a data filter learn from vector observations and continuous actions?

collect [T, N] ──flatten──▶ Rollout [n] ──filter──▶ Selection.keep [n] ──▶ update on the kept records

python -m algos.ppo_continuous --env-id BipedalWalker-v3 --filter iif
"""

import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from math import log, pi
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from torch import Tensor, nn

from algos.envs.evaluate import make_evaluator
from algos.envs.vector import Envs, fragments, make_vector_env
from algos.training.checkpoint import is_due, restart, settings_hash
from algos.training.compiled import BLANK_SIZE, Calls, Compile, choose_calls
from algos.training.corrupt import Corrupted, Corruption
from algos.training.recorder import ConsoleRecorder, Recorder, Round, check_parameters, mean_losses
from algos.training.streams import Stream, generator, seed_sequences, sub_seeds
from filters.api import Filter, Objective, Params, Rollout, Selection, minibatches, run_filter
from filters.errors import TrainingError, UsageError, run_command
from filters.registry import make

LOSSES = ("policy_loss", "value_loss", "entropy")


@dataclass(frozen=True)
class Args:
    """Settings of PPO; the defaults are CleanRL's for continuous control."""

    env_id: str = "Pendulum-v1"
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
    total_steps: int = 1_000_000
    """environment steps to train for; the last round is finished"""
    num_envs: int = 1
    """N, environments side by side"""
    num_steps: int = 2048
    """T, steps a round in each environment"""
    minibatch_size: int = 64
    """records a minibatch"""
    update_epochs: int = 10
    """passes over the rollout in each update"""
    optimizer: Literal["adam", "sgd"] = "adam"
    """sgd is plain, without momentum"""
    learning_rate: float = 3e-4
    """learning rate at the start"""
    adam_eps: float = 1e-5
    """Adam's epsilon"""
    anneal_lr: bool = True
    """let the learning rate fall linearly to zero over the rounds"""
    gamma: float = 0.99
    """discount factor"""
    gae_lambda: float = 0.95
    """λ of generalised advantage estimation"""
    clip_coef: float = 0.2
    """ε of the clipped surrogate objective"""
    clip_value_loss: bool = True
    """clip the value loss like the policy loss"""
    entropy_coef: float = 0.0
    """weight of the entropy bonus"""
    value_coef: float = 0.25
    """weight of the mean squared value error (CleanRL writes the same as 0.5 · 0.5)"""
    max_grad_norm: float = 0.5
    """largest norm of a minibatch's gradient; 0 switches clipping off"""
    eval_every: int = 10
    """rounds between evaluations; the last round is always evaluated"""
    eval_episodes: int = 20
    """episodes an evaluation"""
    checkpoint_every: int = 0
    """rounds between checkpoints, where all environments start new episodes, so it decides the result; 0: none"""
    corrupt: str = "none"
    """make records harmful on purpose, KIND:FRACTION (see algos/training/corrupt.py); evaluation is never touched"""
    hidden: tuple[int, ...] = (64, 64)
    """widths of the tanh layers of the separate policy and value networks"""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "num_steps", "update_epochs", "eval_every", "eval_episodes"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        Corruption.parse(self.corrupt)
        if self.checkpoint_every < 0:
            raise UsageError(f"checkpoint_every must be 0 or more rounds, got {self.checkpoint_every}")
        if not 2 <= self.minibatch_size <= self.batch_size:
            raise UsageError(f"minibatch_size must lie in 2..{self.batch_size} (T·N), got {self.minibatch_size}")
        for name in ("gamma", "gae_lambda"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise UsageError(f"learning_rate must be above 0, got {self.learning_rate}")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise UsageError("device cuda: this PyTorch finds no CUDA device; use cpu or install a CUDA build")

    @property
    def batch_size(self) -> int:
        """n = T·N, records a round."""
        return self.num_steps * self.num_envs

    @property
    def rounds(self) -> int:
        """Rounds until total_steps are reached."""
        return -(-self.total_steps // self.batch_size)


class Agent(nn.Module):
    """Separate tanh networks for the mean action and the value, and a log-standard-deviation of its own."""

    def __init__(self, obs_space: gym.Space[Any], action_space: gym.Space[Any], args: Args) -> None:
        super().__init__()
        if (
            not isinstance(action_space, gym.spaces.Box)
            or len(action_space.shape) != 1
            or len(obs_space.shape or ()) != 1
        ):
            raise UsageError(
                f"algos.ppo_continuous takes vectors and Box actions, {args.env_id} has {obs_space}, {action_space}"
            )
        sizes = (int(np.prod(obs_space.shape or ())), *args.hidden)
        self.actor = mlp(sizes, action_space.shape[0], out_std=0.01)
        self.log_std = nn.Parameter(torch.zeros(action_space.shape[0]))
        self.critic = mlp(sizes, 1, out_std=1.0)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean actions [n, A] and the log-standard-deviation [A]."""
        return self.actor(obs), self.log_std

    def policy_and_value(self, obs: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """The action distribution and values [n]."""
        return self(obs), self.critic(obs).squeeze(-1)


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

    @staticmethod
    def blank(envs: Envs, device: str) -> "Batch":
        """A minibatch of zeros, to trace the optimizer step with."""
        obs, actions = (
            np.zeros((BLANK_SIZE, *(space.shape or ())), space.dtype) for space in (envs.obs_space, envs.action_space)
        )
        numbers = torch.zeros(4, BLANK_SIZE, device=device)
        return Batch(tensor(obs, device), torch.as_tensor(actions).to(device), *numbers)

    def normalized(self) -> "Batch":
        """The same records, their advantages normalised among themselves."""
        return self._replace(advantages=normalize(self.advantages))


def normalize(advantages: Tensor) -> Tensor:
    """Shift and scale to mean 0 and standard deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def columns(rollout: Rollout) -> Batch:
    """The rollout as a batch of all its records."""
    return Batch(*(getattr(rollout, name) for name in Batch._fields))


def sample(gaussian: tuple[Tensor, Tensor], rng: torch.Generator) -> Tensor:
    """Draw actions [m, A] from the Gaussian policy; they stay unclipped, only the environment clips what it gets."""
    mean, log_std = gaussian
    return mean + log_std.exp() * torch.empty_like(mean).normal_(generator=rng)


def log_prob(gaussian: tuple[Tensor, Tensor], actions: Tensor) -> Tensor:
    """log π(a|s) [m] of actions [m, A]: the sum over the action dimensions."""
    mean, log_std = gaussian
    deviation = (actions - mean) / log_std.exp()
    return (-0.5 * deviation.square() - log_std - 0.5 * log(2 * pi)).sum(-1)


def entropy_of(gaussian: tuple[Tensor, Tensor]) -> Tensor:
    """Entropy [m] of the policy, in nats, summed over the action dimensions."""
    mean, log_std = gaussian
    return (log_std + 0.5 * (1 + log(2 * pi))).sum(-1).expand(mean.shape[0])


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


@dataclass
class State:
    """What training carries from round to round."""

    agent: Agent
    optimizer: torch.optim.Optimizer
    calls: Calls
    """the agent's policy and `optimizer_step`, compiled or not"""
    envs: Envs
    obs: NDArray[Any]
    """[N, *obs] where the next rollout starts"""
    episode_returns: NDArray[np.float64]
    """[N] sums of rewards of the episodes under way"""
    rngs: dict[Stream, torch.Generator]
    eval_seeds: np.random.Generator
    """draws one seed an evaluation episode"""
    corruption: np.random.SeedSequence
    """where each round's corruption is drawn from"""
    corrupted: Corrupted | None = None
    """what was made harmful in the last rollout, for the recorder alone"""
    round: int = 0


def open_state(args: Args) -> State:
    """Environments, network and random streams at the start of a run; nothing global is seeded."""
    seeds = seed_sequences(args.seed)
    envs = make_vector_env(args.env_id, args.num_envs, args.env_kwargs, args.env_backend)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seeds["network"].generate_state(1)[0]))
        agent = Agent(envs.obs_space, envs.action_space, args)
    agent.to(args.device)
    if args.optimizer == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(agent.parameters(), lr=args.learning_rate, fused=True)
    else:
        optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=args.adam_eps, fused=True)
    obs = envs.reset(sub_seeds(seeds["environment"], args.num_envs))
    return State(
        agent=agent,
        optimizer=optimizer,
        calls=choose_calls(
            optimizer_step, agent, optimizer, Batch.blank(envs, args.device), tensor(obs, args.device), args
        ),
        envs=envs,
        obs=obs,
        episode_returns=np.zeros(args.num_envs),
        rngs={name: generator(sequence, args.device) for name, sequence in seeds.items()},
        eval_seeds=np.random.default_rng(seeds["evaluation"]),
        corruption=seeds["corruption"],
    )


def tensor(array: NDArray[Any], device: str) -> Tensor:
    """Observations and numbers as the network takes them: bytes stay bytes, all else becomes float32."""
    host = torch.as_tensor(array if array.dtype == np.uint8 else array.astype(np.float32, copy=False))
    return host if device == "cpu" else host.pin_memory().to(device, non_blocking=True)


def collect(state: State, args: Args, recorder: Recorder) -> tuple[Rollout, list[float]]:
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
        state.episode_returns += step.rewards
        over = step.terminated | step.truncated
        ended += state.episode_returns[over].tolist()
        state.episode_returns[over] = 0

    clock.start("inference")
    done = terminated | truncated
    trajectory = fragments(done)
    corrupted = Corruption.parse(args.corrupt).open(state.corruption, state.round, trajectory)
    actions, rewards = corrupted.actions(actions, state.envs.action_space), corrupted.rewards(rewards)
    b_obs = tensor(obs.reshape(T * N, *obs.shape[2:]), args.device)
    b_actions = torch.as_tensor(actions.reshape(T * N, *actions.shape[2:])).to(args.device)
    last = done.copy()
    last[-1] = True
    with torch.no_grad():
        distribution, b_values = state.agent.policy_and_value(b_obs)
        b_logprobs = log_prob(distribution, b_actions)
        values = b_values.cpu().numpy().reshape(T, N)
        next_values = np.concatenate([values[1:], np.zeros_like(values[:1])])
        next_values[last] = state.agent.policy_and_value(tensor(final_obs[last], args.device))[1].cpu().numpy()
    advantages, deltas = gae(rewards, values, next_values, terminated, truncated, args)
    if not np.isfinite(advantages).all():
        raise TrainingError(f"rewards or values are not finite in round {state.round}; try a smaller learning rate")
    b_returns = tensor(advantages.reshape(T * N), args.device) + b_values
    b_advantages = tensor(corrupted.advantages(advantages).reshape(T * N), args.device)
    state.corrupted = corrupted
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


def update(state: State, rollout: Rollout, selection: Selection, apply: Any, args: Args) -> tuple[Tensor, int]:
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
    recorder.start(compiled=state.calls.compiled)
    if args.checkpoint_every:
        recorder.resume(state)
    evaluator = make_evaluator(args.env_id, args.env_kwargs, args.env_backend, args.eval_episodes)

    def act(obs: NDArray[Any]) -> NDArray[Any]:
        with torch.inference_mode():
            distribution = state.agent(tensor(obs, args.device))
            return sample(distribution, state.rngs["evaluation"]).cpu().numpy()

    while state.round < args.rounds:
        if is_due(state.round, args.checkpoint_every):  # also right after resuming: one way for both
            clock.start("logging")
            recorder.checkpoint(state)
            clock.start("startup")
            restart(state, args)
            evaluator.close()
            evaluator = make_evaluator(args.env_id, args.env_kwargs, args.env_backend, args.eval_episodes)
        if args.anneal_lr:
            state.optimizer.param_groups[0]["lr"] = (1 - state.round / args.rounds) * args.learning_rate
        rollout, ended = collect(state, args, recorder)

        clock.start("filter")
        selection = run_filter(filter, rollout, open_objective(state.agent, rollout, args))

        clock.start("update")
        sums, steps = update(state, rollout, selection, apply or filter.apply, args)
        losses = mean_losses(sums, steps, LOSSES, state.round)
        check_parameters(state.agent, state.round)

        clock.start("logging")
        report = Round(
            number=state.round,
            step=(state.round + 1) * args.batch_size,
            rounds=args.rounds,
            selection=selection,
            trajectory=rollout.trajectory,
            corrupted=state.corrupted,
            optimizer_steps=steps,
            losses=losses,
            train_return=float(np.mean(ended)) if ended else None,
        )
        state.round += 1
        if state.round % args.eval_every == 0 or state.round == args.rounds:
            clock.start("evaluation")
            seeds = state.eval_seeds.integers(2**31, size=args.eval_episodes).tolist()
            returns, lengths = evaluator.play(act, seeds)
            clock.start("logging")
            recorder.evaluation(report, returns=returns, lengths=lengths)
        recorder.round(report)
    state.envs.close()
    evaluator.close()
    return state.agent


def main(args: Annotated[Args, tyro.conf.arg(name="")], filter: str = "none") -> None:
    """Train one agent, print its evaluations and write TensorBoard events below runs/.

    With checkpoints, the same command goes on where an interrupted run made its last one.

    Args:
        args: settings.
        filter: filter spec, as in iif:fraction=0.25
    """
    chosen = make(filter)
    name = f"{args.env_id.replace('/', '-')}__{Path(__file__).stem}__{filter.replace('/', '-')}__{args.seed}"
    stamp = settings_hash(args) if args.checkpoint_every else int(time.time())
    recorder = ConsoleRecorder(Path("runs") / "alone" / f"{name}__{stamp}", args)
    train(args, chosen, recorder)
    recorder.close()


if __name__ == "__main__":
    sys.exit(run_command(lambda: tyro.cli(main)))
