"""What does an agent tell the world while it trains?"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from algos.training.clock import Clock
from algos.training.corrupt import Corrupted
from filters.api import Selection


@dataclass(frozen=True)
class Round:
    """What happened in one round."""

    number: int
    """0-based"""
    step: int
    """environment steps so far"""
    rounds: int
    """rounds of the whole run"""
    selection: Selection
    """the filter's answer"""
    trajectory: torch.Tensor
    """[n] which trajectory a record belongs to, 0..U-1"""
    corrupted: Corrupted | None
    """which records were made harmful on purpose"""
    optimizer_steps: int
    """minibatch updates made; 0 when the filter kept too little to train on"""
    losses: dict[str, float] = field(default_factory=dict)
    """means over the minibatches: policy_loss, value_loss, entropy"""
    train_return: float | None = None
    """mean return of the training episodes that ended in the round"""

    @property
    def kept(self) -> float:
        """Share of the records that the update could use."""
        return float(self.selection.keep.float().mean())

    @property
    def scalars(self) -> dict[str, float]:
        """The numbers worth plotting, by TensorBoard tag."""
        numbers = {f"losses/{name}": value for name, value in self.losses.items()}
        numbers |= {"filter/kept": self.kept, "charts/optimizer_steps": float(self.optimizer_steps)}
        if self.train_return is not None:
            numbers["charts/episodic_return"] = self.train_return
        return numbers


class Recorder(Protocol):
    """Takes what `train` reports. It must not touch any random stream."""

    clock: Clock

    def start(self, *, compiled: bool) -> None:
        """Training begins, with the optimizer step compiled or not."""

    def evaluation(self, report: Round, *, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """The policy after that round earned `returns` [E] in episodes of `lengths` [E] steps."""

    def round(self, report: Round) -> None:
        """A round has ended, its evaluation (if there was one) included."""

    def checkpoint(self, state: Any) -> None:
        """Keep the state between two rounds; only with `checkpoint_every`."""

    def resume(self, state: Any) -> None:
        """Put into the fresh state what was kept of it, if there is anything; only with `checkpoint_every`."""


class SilentRecorder:
    """Keeps everything in memory; for tests and for `train` as a function."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.rounds: list[Round] = []
        self.returns: list[NDArray[np.float64]] = []
        self.compiled = False

    def start(self, *, compiled: bool) -> None:
        """Keep how the optimizer step is made."""
        self.compiled = compiled

    def round(self, report: Round) -> None:
        """Append the round."""
        self.rounds.append(report)

    def evaluation(self, report: Round, *, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Append the returns."""
        self.returns.append(returns)

    def checkpoint(self, state: Any) -> None:
        """Keep nothing."""

    def resume(self, state: Any) -> None:
        """Start from the beginning."""
