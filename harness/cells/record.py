"""What does a run leave on disk while it trains, and how is it finished?"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from algos.training.clock import PHASES, Clock, Phase
from algos.training.recorder import Round
from harness.cells.detection import detection
from harness.cells.resume import Checkpoints
from harness.cells.trace import write_trace
from leaderboard.runs.jsonfile import digest
from leaderboard.runs.store import HASHED, SCHEMA, seal, write_json

Progress = Callable[[int, int], None]
"""called with (rounds done, rounds in all)"""


class RunRecorder:
    """Writes a line per evaluation and per round, TensorBoard events, and at the very end `run.json`.

    Args:
        folder: the cell's folder, empty but for its config unless the run goes on from a checkpoint.
        progress: told after every round.
        checkpoints: where to keep the run's state; None for a run without.
        trace: write what every round dropped as well.

    Raises:
        OSError: if the folder can't be written to.
    """

    def __init__(
        self, folder: Path, progress: Progress, checkpoints: Checkpoints | None = None, *, trace: bool = False
    ) -> None:
        self.clock = Clock()
        self._folder = folder
        self._progress = progress
        self._booked: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
        self._checkpoints = checkpoints
        self._trace = trace
        # Appending, so that a write after the logs were cut back for going on lands at their new end.
        self._evals = (folder / "evals.jsonl").open("a", encoding="utf-8")
        self._rounds = (folder / "rounds.jsonl").open("a", encoding="utf-8")
        self._writer: SummaryWriter | None = None
        self._resumed = False
        self.rounds_done = 0
        self._compiled = False

    def start(self, *, compiled: bool) -> None:
        """Keep for `run.json` whether the optimizer step is compiled."""
        self._compiled = compiled

    def evaluation(self, report: Round, *, returns: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Write the checkpoint's episodes and the training seconds so far."""
        line = {"round": report.number + 1, "step": report.step, "seconds": self.clock.training_seconds}
        _write_line(self._evals, line | {"returns": returns.tolist(), "lengths": lengths.tolist()})
        self._scalar("evaluation/mean_return", float(returns.mean()), report.step)

    def round(self, report: Round) -> None:
        """Write what the round did and how long each phase of it took."""
        spent = {phase: self.clock.seconds[phase] - self._booked[phase] for phase in PHASES}
        self._booked = dict(self.clock.seconds)
        line: dict[str, Any] = {"round": report.number, "step": report.step, "kept": report.kept}
        line |= {"optimizer_steps": report.optimizer_steps, "skipped": report.optimizer_steps == 0}
        line |= {"unscorable": report.selection.unscorable}
        if report.corrupted is not None and report.corrupted.fraction:
            line |= {"corruption": detection(report)}
        _write_line(self._rounds, line | report.losses | {"train_return": report.train_return, "seconds": spent})
        if self._trace:
            write_trace(self._folder, report)
        for tag, value in report.scalars.items():
            self._scalar(tag, value, report.step)
        self.rounds_done = report.number + 1
        self._progress(self.rounds_done, report.rounds)

    def _scalar(self, tag: str, value: float, step: int) -> None:
        if self._writer is None:
            # What was written after the checkpoint happens again from this step on, and goes from the plots.
            self._writer = SummaryWriter(str(self._folder), purge_step=step if self._resumed else None)
        self._writer.add_scalar(tag, value, step)

    def checkpoint(self, state: Any) -> None:
        """Keep the state between two rounds; raises OSError if the disk does not take it."""
        if self._checkpoints:
            self._checkpoints.save(state, self.clock)

    def resume(self, state: Any) -> None:
        """Go on from the cell's checkpoint if there is one that fits, else start over."""
        if self._checkpoints and self._checkpoints.restore(state, self.clock):
            self._resumed = True
            self._booked = dict(self.clock.seconds)
            self.rounds_done = state.round

    def finish(self, agent: nn.Module, provenance: dict[str, Any], *, filter_source: str | None = None) -> None:
        """Make everything durable, then write `run.json`: from now on the cell is complete.

        Args:
            agent: as training left it; its hash is kept.
            provenance: code, packages and hardware.
            filter_source: SHA-256 of the file that the filter's class came from.
        """
        self.close()
        seconds = {phase: self.clock.seconds[phase] for phase in PHASES}
        run = {"schema": SCHEMA, "status": "complete", "seconds": seconds, "filter_source": filter_source}
        run |= {"compiled": self._compiled, "parameters": parameters_hash(agent), "provenance": provenance}
        if self._checkpoints and len(self._checkpoints.stretches) > 1:
            run["stretches"] = self._checkpoints.stretches
        run["files"] = {name: digest(self._folder / name) for name in HASHED if (self._folder / name).exists()}
        write_json(self._folder / "run.json", run | {"digest": seal(run)})
        if self._checkpoints:
            self._checkpoints.remove()

    def close(self) -> None:
        """Flush and close all files."""
        for file in (self._evals, self._rounds):
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
                file.close()
        if self._writer is not None:
            self._writer.close()


def parameters_hash(agent: nn.Module) -> str:
    """SHA-256 of all parameters and buffers, by name."""
    found = hashlib.sha256()
    for name, value in sorted(agent.state_dict().items()):
        found.update(name.encode())
        found.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _write_line(file: TextIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, allow_nan=False) + "\n")
    file.flush()
