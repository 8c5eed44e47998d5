"""How does an agent that acts in environments begin, start anew, and show what its policy earns?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from algos.envs.evaluate import Episodes, make_evaluator
from algos.envs.interface import Envs
from algos.envs.vector import make_vector_env
from algos.training.compiled import BLANK_SIZE, PlainStep, choose_calls
from algos.training.corrupt import Corrupted
from algos.training.state import AgentState, make_optimizer
from algos.training.streams import at_round, generator, seed_sequences, sub_seeds


def tensor(array: NDArray[Any], device: str) -> Tensor:
    """Observations and numbers as the network takes them: bytes stay bytes, all else becomes float32."""
    host = torch.as_tensor(array if array.dtype == np.uint8 else array.astype(np.float32, copy=False))
    return host if device == "cpu" else host.pin_memory().to(device, non_blocking=True)


def blank_batch(kind: Any, envs: Envs, device: str) -> Any:
    """A minibatch of zeros, to trace the optimizer step with.

    Args:
        kind: the NamedTuple of the agent's minibatches: obs, actions, then columns of one number a record.
        envs: whose observations and actions they are.
        device: where training has its minibatches.
    """
    obs, actions = (
        np.zeros((BLANK_SIZE, *(space.shape or ())), space.dtype) for space in (envs.obs_space, envs.action_space)
    )
    numbers = torch.zeros(len(kind._fields) - 2, BLANK_SIZE, device=device)
    return kind(tensor(obs, device), torch.as_tensor(actions).to(device), *numbers)


@dataclass(kw_only=True)
class EnvState(AgentState):
    """What an agent that acts in environments carries from round to round."""

    envs: Envs
    obs: NDArray[Any]
    """[N, *obs] where the next rollout starts"""
    episode_returns: NDArray[np.float64]
    """[N] sums of rewards of the episodes under way"""
    corruption: np.random.SeedSequence
    """where each round's corruption is drawn from"""
    corrupted: Corrupted | None = None
    """what was made harmful in the last rollout, for the recorder alone"""

    @classmethod
    def begin(cls, args: Any, envs: Envs, agent: nn.Module, *, step: PlainStep, batch: Any) -> "EnvState":
        """The state before the first round: every stream is spawned from the run's seed, every environment is reset.

        Args:
            args: the agent's settings.
            envs: the environments to train in.
            agent: the network, where `args.device` says.
            step: the agent's `optimizer_step`, compiled if `args.compile` asks for it.
            batch: the NamedTuple of the minibatches that `step` takes.
        """
        seeds = seed_sequences(args.seed)
        optimizer = make_optimizer(agent, args)
        obs = envs.reset(sub_seeds(seeds["environment"], args.num_envs))
        blank = blank_batch(batch, envs, args.device)
        return cls(
            agent=agent,
            optimizer=optimizer,
            calls=choose_calls(step, agent, optimizer, blank, tensor(obs, args.device), args),
            rngs={name: generator(sequence, args.device) for name, sequence in seeds.items()},
            eval_seeds=np.random.default_rng(seeds["evaluation"]),
            envs=envs,
            obs=obs,
            episode_returns=np.zeros(args.num_envs),
            corruption=seeds["corruption"],
        )

    def restart(self, args: Any) -> None:
        """Start the training environments anew, with seeds of their own for `round`.

        The episodes under way are over for good. As at every end of a rollout, their last record is already
        bootstrapped with the value of the observation that followed, so they count as truncated; their returns are
        never reported.
        """
        self.envs.close()
        # Made anew, not only reset: an engine may remember earlier episodes.
        self.envs = make_vector_env(args.env_id, args.num_envs, args.env_kwargs, args.env_backend)
        sequence = at_round(seed_sequences(args.seed)["environment"], self.round)
        self.obs = self.envs.reset(sub_seeds(sequence, args.num_envs))
        self.episode_returns = np.zeros(args.num_envs)

    def close(self) -> None:
        """Close the training environments."""
        self.envs.close()


class EnvEvaluation:
    """The evaluations of a run (see `algos.training.loop.Evaluation`): its policy plays in environments of their own.

    Args:
        state: whose agent plays, as it is at each evaluation, with the stream `evaluation`.
        sample: the agent's own; draws actions [m, *act] from its distribution.
        args: the agent's settings.
    """

    def __init__(self, state: AgentState, sample: Callable[[Any, torch.Generator], Tensor], args: Any) -> None:
        self.state, self.sample, self.args = state, sample, args
        self._open()

    def _open(self) -> None:
        args = self.args
        self.evaluator = make_evaluator(args.env_id, args.env_kwargs, args.env_backend, args.eval_episodes)

    def act(self, obs: NDArray[Any]) -> NDArray[Any]:
        """Actions [m, *act] for observations [m, *obs]."""
        with torch.inference_mode():
            distribution = self.state.agent(tensor(obs, self.args.device))
            return self.sample(distribution, self.state.rngs["evaluation"]).cpu().numpy()

    def play(self, seeds: Sequence[int]) -> Episodes:
        """Play one episode a seed."""
        return self.evaluator.play(self.act, seeds)

    def restart(self) -> None:
        """Make the environments anew, as those of training."""
        self.close()
        self._open()

    def close(self) -> None:
        """Close all environments."""
        self.evaluator.close()
