"""What is not finite ends a run in its round, and says what it was."""

import pytest
import torch

from algos import ppo, ppo_minigrid
from algos.training.finite import check_parameters, mean_losses
from algos.training.recorder import SilentRecorder
from filters.errors import TrainingError
from filters.registry import make

CUT = {"num_envs": 2, "num_steps": 32, "minibatch_size": 64, "total_steps": 128, "update_epochs": 1}


@pytest.mark.parametrize("agent", [ppo, ppo_minigrid])
def test_a_step_that_leaves_no_finite_parameter_ends_the_run_in_its_round(agent: object) -> None:
    """The one loss of the round was finite; what came of it is not."""
    args = agent.Args(**CUT, optimizer="sgd", learning_rate=float("inf"), max_grad_norm=0.0)  # type: ignore[attr-defined]
    recorder = SilentRecorder()
    with pytest.raises(TrainingError, match=r"parameter \S+ is not finite after the update of round 0"):
        agent.train(args, make("none"), recorder)  # type: ignore[attr-defined]
    assert recorder.rounds == []


def test_the_first_bad_parameter_is_named() -> None:
    agent = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    check_parameters(agent, 7)
    with torch.no_grad():
        agent[1].bias[0] = torch.nan
    with pytest.raises(TrainingError, match=r"parameter 1\.bias is not finite .* round 7"):
        check_parameters(agent, 7)


def test_a_loss_is_named() -> None:
    with pytest.raises(TrainingError, match="value_loss is nan in round 3"):
        mean_losses(torch.tensor([1.0, torch.nan]), 1, ("policy_loss", "value_loss"), 3)
