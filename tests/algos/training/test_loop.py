"""What surrounds an algorithm takes any agent: here one without environments, which guesses words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from algos.training.alone import ConsoleRecorder
from algos.training.compiled import Calls
from algos.training.loop import Loop
from algos.training.recorder import Recorder, Round, SilentRecorder
from algos.training.settings import check_settings
from algos.training.state import AgentState, make_optimizer
from algos.training.streams import generator, network_stream, seed_sequences
from filters.api import Selection
from filters.errors import UsageError

WORDS = 5


@dataclass(frozen=True)
class Args:
    """Settings of an agent that has neither environments nor γ."""

    seed: int = 0
    device: str = "cpu"
    optimizer: str = "adam"
    learning_rate: float = 0.1
    adam_eps: float = 1e-8
    batch_size: int = 8
    minibatch_size: int = 8
    rounds: int = 6
    eval_every: int = 4
    eval_episodes: int = 3
    checkpoint_every: int = 2

    def __post_init__(self) -> None:
        check_settings(self)


class Guesses(AgentState):
    """Knows how often it was started anew, and whether it was closed."""

    restarts = 0
    closed = False

    def restart(self, args: Any) -> None:
        self.restarts += 1

    def close(self) -> None:
        self.closed = True


class Quiz:
    """A right guess, word 0, earns 1."""

    def __init__(self, state: AgentState) -> None:
        self.state = state
        self.restarts = 0
        self.closed = False

    def play(self, seeds: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        right = float(self.state.agent.weight.detach().softmax(-1)[0, 0])
        return np.array([right + seed % 2 for seed in seeds]), np.ones(len(seeds), np.int64)

    def restart(self) -> None:
        self.restarts += 1

    def close(self) -> None:
        self.closed = True


def open_state(args: Args) -> Guesses:
    with network_stream(args.seed):
        agent = torch.nn.Embedding(1, WORDS)
    seeds = seed_sequences(args.seed)
    return Guesses(
        agent=agent,
        optimizer=make_optimizer(agent, args),
        calls=Calls(agent, lambda mb: mb, compiled=False),
        rngs={name: generator(sequence) for name, sequence in seeds.items()},
        eval_seeds=np.random.default_rng(seeds["evaluation"]),
    )


def train(args: Args, recorder: Recorder) -> tuple[Guesses, Quiz]:
    """REINFORCE: the logarithm of a word's probability grows with what it earned."""
    state = open_state(args)
    quiz = Quiz(state)
    loop = Loop(state, args, recorder, quiz)
    while loop.goes_on():
        recorder.clock.start("inference")
        logits = state.agent.weight[0]
        words = torch.multinomial(logits.softmax(-1), args.batch_size, True, generator=state.rngs["action"])
        earned = (words == 0).float()
        recorder.clock.start("update")
        loss = -(logits.log_softmax(-1)[words] * earned).mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        loop.report(
            selection=Selection(keep=earned > 0),
            trajectory=torch.arange(args.batch_size),
            optimizer_steps=1,
            losses={"policy_loss": float(loss.detach())},
            returns=earned.tolist(),
        )
    loop.close()
    return state, quiz


class StoppedError(Exception):
    """As if the process had been killed."""


class Stopping(ConsoleRecorder):
    """Stops after the fifth round."""

    def round(self, report: Round) -> None:
        super().round(report)
        if report.number == 4:
            self.writer.close()
            raise StoppedError


def test_rounds_are_counted_reported_and_evaluated_when_due() -> None:
    recorder = SilentRecorder()
    state, quiz = train(Args(), recorder)
    assert [(report.number, report.step, report.rounds) for report in recorder.rounds] == [
        (i, 8 * (i + 1), 6) for i in range(6)
    ]
    assert len(recorder.returns) == 2  # after round 4, and after the last
    assert all(report.train_return == pytest.approx(report.kept) for report in recorder.rounds)
    assert all(report.corrupted is None for report in recorder.rounds)
    assert state.restarts == quiz.restarts == 2  # before the rounds 3 and 5; not after the last
    assert state.closed
    assert quiz.closed
    assert recorder.clock.seconds["evaluation"] > 0


def test_without_checkpoints_nothing_starts_anew() -> None:
    state, quiz = train(Args(checkpoint_every=0), SilentRecorder())
    assert state.restarts == quiz.restarts == 0


def test_a_run_without_environments_goes_on_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, _ = train(Args(), SilentRecorder())
    with pytest.raises(StoppedError):
        train(Args(), Stopping(tmp_path, Args()))
    recorder = ConsoleRecorder(tmp_path, Args())
    state, _ = train(Args(), recorder)
    recorder.close()
    assert "going on after round 4/6" in capsys.readouterr().out
    assert state.agent.weight.detach().numpy().tobytes() == expected.agent.weight.detach().numpy().tobytes()
    assert json.dumps(state.eval_seeds.bit_generator.state) == json.dumps(expected.eval_seeds.bit_generator.state)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"eval_every": 0}, "eval_every must be at least 1"),
        ({"checkpoint_every": -1}, "checkpoint_every must be 0 or more"),
        ({"minibatch_size": 9}, r"minibatch_size must lie in 2\.\.8"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_settings_that_an_agent_lacks_are_not_looked_at_and_the_others_are(change: Any, sentence: str) -> None:
    Args()
    with pytest.raises(UsageError, match=sentence):
        Args(**change)
