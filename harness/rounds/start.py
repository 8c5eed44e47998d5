"""Where does a look into a run begin? With fresh parameters, those of a policy file, or at a run's checkpoint."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from algos.training import checkpoint
from algos.training.checkpoint import CheckpointError, Content
from filters.errors import UsageError
from filters.gradients import reference
from filters.gradients.reference import Reference


@dataclass(frozen=True)
class Start:
    """A policy with which rounds count from 1, or the checkpoint of a run, which goes on from its own round."""

    policy: Reference | None = None
    checkpoint: Content | None = None

    @property
    def round(self) -> int:
        """Rounds that lie behind it."""
        return self.checkpoint["round"] if self.checkpoint else 0

    def put_into(self, state: Any, args: Any) -> None:
        """Give it to a state that `open_state` made; raises UsageError if it is of another architecture."""
        if self.policy is not None:
            load_policy(state.agent, self.policy)
        if self.checkpoint is not None:
            try:
                # Compiled or not changes how steps are computed, never what a checkpoint holds.
                checkpoint.restore(state, self.checkpoint | {"compiled": state.calls.compiled})
            except CheckpointError as error:
                raise UsageError(
                    "the checkpoint of --policy is of another network or optimizer; give the --task that it was made on"
                ) from error
            state.restart(args)


def read_start(path: Path | None) -> Start | None:
    """What is in a file from `python -m harness.reference` or in a run's `checkpoint.pt`.

    Raises:
        UsageError: nothing of that kind.
    """
    if path is None:
        return None
    content: Any = None
    with suppress(Exception):  # torch and zipfile raise many kinds for what is no checkpoint
        content = checkpoint.read(path.read_bytes())
    if isinstance(content, dict) and content.get("format") == checkpoint.FORMAT:
        if type(content.get("round")) is not int:
            raise UsageError(f"--policy: the checkpoint {path} is damaged")
        return Start(checkpoint=content)
    try:
        return Start(policy=reference.load(str(path)))
    except ValueError as error:
        raise UsageError(f"--policy: {error}, or give a run's {checkpoint.FILE}") from error


def load_policy(agent: torch.nn.Module, policy: Reference) -> None:
    """Give the agent the parameters of a policy file; raises UsageError if they are of another architecture."""
    mine = {name: tuple(p.shape) for name, p in agent.named_parameters()}
    if {name: tuple(p.shape) for name, p in policy.params.items()} != mine:
        raise UsageError(
            f"the policy was trained on {policy.task} with another architecture; "
            "make one with python -m harness.reference on this task"
        )
    agent.load_state_dict(policy.params, strict=False)
