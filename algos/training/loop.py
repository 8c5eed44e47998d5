"""What happens between an agent's rounds, whatever the agent is?"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from algos.training.corrupt import Corrupted
from algos.training.recorder import Recorder, Round
from algos.training.state import AgentState
from filters.api import Selection


class Evaluation(Protocol):
    """Measures the agent as it is now, apart from its training."""

    def play(self, seeds: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """One episode a seed: returns [E] and lengths [E]."""

    def restart(self) -> None:
        """Start anew, so that nothing is left of earlier episodes."""

    def close(self) -> None:
        """Close what is open."""


class Loop:
    """Goes on from a checkpoint, makes the next ones, evaluates, and tells the recorder.

    while loop.goes_on():
        ...  # the agent's round
        loop.report(...)
    loop.close()

    Args:
        state: what the agent's `open_state` made; the recorder's checkpoint is put into it if there is one.
        args: the agent's settings. Used here are batch_size, rounds, eval_every, eval_episodes, checkpoint_every.
        recorder: is told of every round and evaluation.
        evaluation: what measures the agent.
    """

    def __init__(self, state: AgentState, args: Any, recorder: Recorder, evaluation: Evaluation) -> None:
        self.state, self.args, self.recorder, self.evaluation = state, args, recorder, evaluation
        recorder.start(compiled=state.calls.compiled)
        if args.checkpoint_every:
            recorder.resume(state)

    def goes_on(self) -> bool:
        """Whether there is another round; a checkpoint that is due before it is made here."""
        state, every = self.state, self.args.checkpoint_every
        if state.round >= self.args.rounds:
            return False
        if every and state.round and state.round % every == 0:  # also right after resuming: one way for both
            self._checkpoint()
        return True

    def _checkpoint(self) -> None:
        clock = self.recorder.clock
        clock.start("logging")
        self.recorder.checkpoint(self.state)
        clock.start("startup")
        self.state.restart(self.args)
        self.evaluation.restart()

    def report(
        self,
        *,
        selection: Selection,
        trajectory: Tensor,
        optimizer_steps: int,
        losses: dict[str, float],
        returns: Sequence[float],
        corrupted: Corrupted | None = None,
    ) -> None:
        """End a round: tell the recorder what happened in it, after an evaluation if one is due.

        Args:
            selection: the filter's answer.
            trajectory: [n] which trajectory a record belongs to, 0..U-1.
            optimizer_steps: minibatch updates made.
            losses: their means; empty without an update.
            returns: of the training episodes that ended in the round.
            corrupted: which records were made harmful on purpose.
        """
        state, args = self.state, self.args
        self.recorder.clock.start("logging")
        report = Round(
            number=state.round,
            step=(state.round + 1) * args.batch_size,
            rounds=args.rounds,
            selection=selection,
            trajectory=trajectory,
            corrupted=corrupted,
            optimizer_steps=optimizer_steps,
            losses=losses,
            train_return=float(np.mean(returns)) if returns else None,
        )
        state.round += 1
        if state.round % args.eval_every == 0 or state.round == args.rounds:
            self._evaluate(report)
        self.recorder.round(report)

    def _evaluate(self, report: Round) -> None:
        clock = self.recorder.clock
        clock.start("evaluation")
        seeds = self.state.eval_seeds.integers(2**31, size=self.args.eval_episodes).tolist()
        returns, lengths = self.evaluation.play(seeds)
        clock.start("logging")
        self.recorder.evaluation(report, returns=returns, lengths=lengths)

    def close(self) -> None:
        """Close everything at the end of the last round."""
        self.state.close()
        self.evaluation.close()
