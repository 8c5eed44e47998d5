"""What does every agent carry from round to round?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from algos.training.compiled import Calls
from algos.training.streams import Stream


@dataclass(kw_only=True)
class AgentState:
    """All that checkpoints keep; an agent's own state may hold more, which `restart` makes anew."""

    agent: Any
    """the network, of the agent's own class"""
    optimizer: torch.optim.Optimizer
    calls: Calls
    """the agent's policy and `optimizer_step`, compiled or not"""
    rngs: dict[Stream, torch.Generator]
    """one for each kind of randomness"""
    eval_seeds: np.random.Generator
    """draws one seed an evaluation episode"""
    round: int = 0

    def restart(self, args: Any) -> None:
        """Start anew what a checkpoint can't keep, in a way that depends on the run's seed and `round` alone."""

    def close(self) -> None:
        """Close what is open."""


def make_optimizer(agent: torch.nn.Module, args: Any) -> torch.optim.Optimizer:
    """The optimizer that the settings name, for all the agent's parameters; sgd is plain, without momentum."""
    if args.optimizer == "sgd":
        return torch.optim.SGD(agent.parameters(), lr=args.learning_rate, fused=True)
    return torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=args.adam_eps, fused=True)
