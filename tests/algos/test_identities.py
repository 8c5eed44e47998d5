"""What must not depend on the filter: weights, environments, order; and what must repeat to the byte."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.training.recorder import SilentRecorder
from algos.training.streams import STREAMS, seed_sequences, sub_seeds
from filters.errors import TrainingError
from filters.registry import make

MLP = ppo.Args(
    env_id="Acrobot-v1", num_envs=2, num_steps=128, minibatch_size=64, total_steps=768, eval_every=2, eval_episodes=2
)
GRID = ppo_minigrid.Args(
    env_id="MiniGrid-Empty-5x5-v0", num_envs=2, num_steps=128, total_steps=768, eval_every=2, eval_episodes=2
)
CONTINUOUS = ppo_continuous.Args(
    num_envs=2, num_steps=128, total_steps=768, update_epochs=4, eval_every=2, eval_episodes=2
)
ATARI = ppo_atari.Args(
    num_envs=2,
    num_steps=32,
    minibatch_size=32,
    total_steps=128,
    update_epochs=1,
    eval_every=2,
    eval_episodes=1,
)
AGENTS = [
    pytest.param(ppo, MLP, id="mlp"),
    pytest.param(ppo_minigrid, GRID, id="conv"),
    pytest.param(ppo_continuous, CONTINUOUS, id="gaussian"),
]


def run(module: ModuleType, args: Any, spec: str, apply: Any = None) -> tuple[bytes, SilentRecorder]:
    """Final parameters as bytes, and what was recorded."""
    recorder = SilentRecorder()
    agent = module.train(args, make(spec), recorder, apply)
    return b"".join(p.detach().numpy().tobytes() for p in agent.parameters()), recorder


@pytest.mark.parametrize(("module", "args"), AGENTS)
def test_filters_that_drop_nothing_equal_the_baseline_byte_for_byte(module: ModuleType, args: Any) -> None:
    baseline, _ = run(module, args, "none")
    for spec in ("random:fraction=0", "iif:fraction=0", "iif:warmup=3"):
        assert run(module, args, spec)[0] == baseline, spec
    assert run(module, args, "none", "mask")[0] == baseline
    assert run(module, args, "iif:fraction=1")[0] != baseline


@pytest.mark.parametrize(("module", "args"), AGENTS)
@pytest.mark.parametrize("spec", ["iif:fraction=0.5", "random:fraction=0.5"])
def test_the_same_run_twice_is_byte_identical(module: ModuleType, args: Any, spec: str) -> None:
    (first, one), (second, two) = run(module, args, spec), run(module, args, spec)
    assert first == second
    assert [r.tolist() for r in one.returns] == [r.tolist() for r in two.returns]
    assert [r.losses for r in one.rounds] == [r.losses for r in two.rounds]
    assert run(module, replace(args, seed=1), spec)[0] != first


@pytest.mark.parametrize(("module", "args"), AGENTS)
def test_filters_of_one_seed_share_weights_environments_and_the_first_rollout(module: ModuleType, args: Any) -> None:
    states = [module.open_state(args) for _ in range(2)]
    assert all(torch.equal(p, q) for p, q in zip(*(s.agent.parameters() for s in states), strict=True))
    make("random:fraction=0.5")
    torch.randn(3, generator=states[1].rngs["filter"])  # a filter that draws
    rollouts = [module.collect(state, args, SilentRecorder())[0] for state in states]
    for column in ("obs", "actions", "rewards", "advantages"):
        assert torch.equal(*(getattr(rollout, column) for rollout in rollouts))


def test_neighbouring_seeds_share_no_environment() -> None:
    seeds = [set(sub_seeds(seed_sequences(seed)["environment"], 64)) for seed in range(20)]
    assert len(set.union(*seeds)) == 20 * 64
    starts = [ppo.open_state(replace(MLP, num_envs=8, seed=seed)).obs for seed in range(3)]
    assert len(np.unique(np.concatenate(starts), axis=0)) == 24


def test_streams_are_independent_of_each_other() -> None:
    words = {int(sequence.generate_state(1)[0]) for sequence in seed_sequences(0).values()}
    assert len(words) == len(STREAMS) == 7


@pytest.mark.parametrize(("module", "args"), AGENTS)
def test_training_leaves_the_global_random_state_alone(module: ModuleType, args: Any) -> None:
    before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002  this state is what is being watched
    run(module, args, "random:fraction=0.5")
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == str(np.random.get_state())  # noqa: NPY002


@pytest.mark.parametrize(("module", "args"), AGENTS)
@pytest.mark.parametrize("apply", ["repack", "mask"])
@pytest.mark.parametrize(("kept", "per_epoch"), [(0, 0), (1, 0), (65, 1)])
def test_odd_numbers_of_kept_records(module: ModuleType, args: Any, apply: str, kept: int, per_epoch: int) -> None:
    """A filter that keeps 0 or 1 records makes no step; 65 with minibatch 64 never make a minibatch of one."""
    _, recorder = run(module, args, f"tests.broken_filters:KeepsCount:count={kept}", apply)
    steps = [report.optimizer_steps for report in recorder.rounds]
    if apply == "repack" or kept < 2:
        assert steps == [per_epoch * args.update_epochs] * 3
    else:
        assert all(steps)
    assert all(np.isfinite(list(report.losses.values())).all() for report in recorder.rounds)


def test_a_round_that_keeps_nothing_leaves_the_parameters_alone() -> None:
    untouched = run(ppo, replace(MLP, total_steps=256), "tests.broken_filters:KeepsCount:count=0")[0]
    initial = b"".join(p.detach().numpy().tobytes() for p in ppo.open_state(MLP).agent.parameters())
    assert untouched == initial
    _, recorder = run(ppo, MLP, "tests.broken_filters:KeepsNothingOnce")
    assert [report.optimizer_steps > 0 for report in recorder.rounds] == [True, False, True]


@pytest.mark.parametrize(("module", "args"), AGENTS)
def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_round(module: ModuleType, args: Any) -> None:
    wild = replace(args, optimizer="sgd", learning_rate=1e30, max_grad_norm=0.0)
    with pytest.raises(TrainingError, match=r"in round [01]; try a smaller learning rate"):
        run(module, wild, "none")


@pytest.mark.parametrize("spec", ["none", "iif:fraction=0"])
def test_the_atari_agent_repeats_to_the_byte(spec: str) -> None:
    """Shorter than the others: its episodes are long."""
    first = run(ppo_atari, ATARI, "none")[0]
    assert run(ppo_atari, ATARI, spec)[0] == first
