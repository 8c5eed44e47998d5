"""What does an agent tell the world while it trains?"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from algos.training.checkpoint import FILE, CheckpointError, load, read_seconds, restore, save, settings_hash
from algos.training.clock import PHASES, Clock, Phase
from algos.training.corrupt import Corrupted
from filters.api import Selection
from filters.errors import TrainingError


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


class ConsoleRecorder(SilentRecorder):
    """What an agent that runs alone does: prints a line per evaluation and writes TensorBoard events."""

    def __init__(self, folder: Path, args: Any) -> None:
        super().__init__()
        from torch.utils.tensorboard import SummaryWriter  # costs a second at import, which workers need not pay

        self.folder, self.args = folder, args
        self.writer = SummaryWriter(str(folder))
        table = "\n".join(f"|{name}|{value}|" for name, value in vars(args).items())
        self.writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{table}")

    def round(self, report: Round) -> None:
        """Write the round's scalars."""
        for tag, value in report.scalars.items():
            self.writer.add_scalar(tag, value, report.step)
        speed = report.step / max(self.clock.training_seconds, 1e-9)
        self.writer.add_scalar("charts/SPS", speed, report.step)

    def evaluation(self, report: Round, *, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Print one line and write the mean return."""
        self.writer.add_scalar("evaluation/mean_return", float(returns.mean()), report.step)
        seconds = self.clock.training_seconds
        left = seconds / report.step * (report.step / (report.number + 1) * report.rounds - report.step)
        print(
            f"round {report.number + 1}/{report.rounds}  step {report.step:,}  return {returns.mean():.2f} "
            f"(n = {len(returns)})  kept {report.kept:.1%}  {report.step / seconds:,.0f} steps/s  {left:.0f} s left",
            flush=True,
        )

    def checkpoint(self, state: Any) -> None:
        """Keep the state in the folder of the events."""
        seconds = {name: self.clock.seconds[name] for name in PHASES}
        save(self.folder / FILE, state, {"settings": settings_hash(self.args), "seconds": seconds})

    def resume(self, state: Any) -> None:
        """Go on from the folder's checkpoint if it is of these settings, and say so."""
        path = self.folder / FILE
        if not path.exists():
            return
        try:
            content = load(path, state)
            seconds = self._seconds_of(content)
            restore(state, content)
        except CheckpointError as error:
            print(f"starting over: {error}", file=sys.stderr)
            return
        for name in PHASES:
            self.clock.seconds[name] += seconds[name]
        self.writer.close()
        self.writer = type(self.writer)(str(self.folder), purge_step=state.round * self.args.batch_size + 1)
        print(f"going on after round {state.round}/{self.args.rounds}", flush=True)

    def _seconds_of(self, content: dict[str, Any]) -> dict[Phase, float]:
        extra = content.get("extra")
        if not isinstance(extra, dict) or extra.get("settings") != settings_hash(self.args):
            raise CheckpointError(f"{self.folder / FILE} was made with other settings")
        return read_seconds(extra.get("seconds"))

    def close(self) -> None:
        """Flush and close the event file; the run is complete and its checkpoint goes."""
        self.writer.close()
        (self.folder / FILE).unlink(missing_ok=True)


def mean_losses(sums: torch.Tensor, steps: int, names: tuple[str, ...], number: int) -> dict[str, float]:
    """Turn the losses summed on the device into means over `steps` minibatches; the round's one host transfer.

    Raises:
        TrainingError: if one is not finite.
    """
    if steps == 0:
        return {}
    losses = dict(zip(names, (sums / steps).tolist(), strict=True))
    bad = [name for name, value in losses.items() if not np.isfinite(value)]
    if bad:
        raise TrainingError(f"{bad[0]} is {losses[bad[0]]} in round {number}; try a smaller learning rate")
    return losses


def check_parameters(agent: torch.nn.Module, number: int) -> None:
    """Raise TrainingError if a parameter is not finite, as after a gradient that was not: losses show that too late."""
    named = dict(agent.named_parameters())
    finite = torch.stack([p.detach().isfinite().all() for p in named.values()]).tolist()
    bad = [name for name, fine in zip(named, finite, strict=True) if not fine]
    if bad:
        raise TrainingError(
            f"parameter {bad[0]} is not finite after the update of round {number}, because a gradient was not or the "
            "step was too large; try a smaller learning rate"
        )
