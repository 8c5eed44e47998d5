"""Which settings of an agent can't be meant, and what is a short name for all of them?"""

import hashlib
import json
from dataclasses import asdict
from typing import Any

import torch

from algos.training.corrupt import Corruption
from filters.errors import UsageError

AT_LEAST_ONE = ("total_steps", "num_envs", "num_steps", "update_epochs", "eval_every", "eval_episodes")
SHARES = ("gamma", "gae_lambda")


def check_settings(args: Any) -> None:
    """Look at an agent's settings. One of the same name means the same in every agent; those it lacks are skipped.

    Raises:
        UsageError: one of them is out of its bounds.
    """
    for name in AT_LEAST_ONE:
        if getattr(args, name, 1) < 1:
            raise UsageError(f"{name} must be at least 1, got {getattr(args, name)}")
    Corruption.parse(getattr(args, "corrupt", "none"))
    if args.checkpoint_every < 0:
        raise UsageError(f"checkpoint_every must be 0 or more rounds, got {args.checkpoint_every}")
    if not 2 <= args.minibatch_size <= args.batch_size:
        raise UsageError(f"minibatch_size must lie in 2..{args.batch_size} (T·N), got {args.minibatch_size}")
    for name in SHARES:
        if not 0 <= getattr(args, name, 0) <= 1:
            raise UsageError(f"{name} must lie in [0, 1], got {getattr(args, name)}")
    if not args.learning_rate > 0:
        raise UsageError(f"learning_rate must be above 0, got {args.learning_rate}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("device cuda: this PyTorch finds no CUDA device; use cpu or install a CUDA build")


def settings_hash(args: Any) -> str:
    """A short name for an agent's settings, all of them."""
    return hashlib.sha256(json.dumps(asdict(args), sort_keys=True).encode()).hexdigest()[:12]
