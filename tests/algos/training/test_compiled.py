"""The compiled step is the eager one, and where it can't be had training goes on."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.training import compiled
from algos.training.acting import blank_batch
from algos.training.compiled import CompileWarning, choose_calls, has_compiler, pays
from algos.training.recorder import SilentRecorder
from filters.api import Selection
from filters.registry import make

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler and Python's headers")

SHORT: dict[str, Any] = {"num_envs": 2, "num_steps": 128, "minibatch_size": 64, "update_epochs": 2, "total_steps": 512}
AGENTS = {
    "ppo": (ppo, ppo.Args(**SHORT, optimizer="sgd", max_grad_norm=0.0, learning_rate=5e-3)),
    "ppo_continuous": (ppo_continuous, ppo_continuous.Args(**SHORT)),
    "ppo_minigrid": (ppo_minigrid, ppo_minigrid.Args(env_id="MiniGrid-Empty-5x5-v0", **SHORT)),
    "ppo_atari": (ppo_atari, ppo_atari.Args(**(SHORT | {"num_steps": 64}))),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@needs_compiler
@pytest.mark.parametrize("name", AGENTS)
def test_three_updates_agree_with_the_eager_ones(name: str) -> None:
    module, args = AGENTS[name]
    eager = module.open_state(replace(args, compile="off"))
    fast = module.open_state(replace(args, compile="on"))
    assert (eager.calls.compiled, fast.calls.compiled) == (False, True)
    rollout, _ = module.collect(eager, args, SilentRecorder())
    same, _ = module.collect(fast, args, SilentRecorder())
    assert torch.equal(rollout.actions, same.actions) or rollout.actions.is_floating_point()
    torch.testing.assert_close(same.obs, rollout.obs, rtol=0, atol=1e-3)
    keeps = [torch.ones(rollout.n, dtype=torch.bool), torch.arange(rollout.n) % 3 > 0, torch.arange(rollout.n) % 7 > 3]
    for keep, apply in zip(keeps, ("repack", "mask", "mask"), strict=True):  # with mask, minibatches of all sizes
        answers = [module.update(state, rollout, Selection(keep), apply, args) for state in (eager, fast)]
        (sums, steps), (fast_sums, fast_steps) = answers
        assert steps == fast_steps > 0
        torch.testing.assert_close(fast_sums / steps, sums / steps, rtol=1e-5, atol=1e-5)
    for one, other in zip(eager.agent.parameters(), fast.agent.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@needs_compiler
def test_an_annealed_learning_rate_reaches_the_compiled_step() -> None:
    state = ppo.open_state(replace(AGENTS["ppo"][1], compile="on"))
    state.optimizer.param_groups[0]["lr"] = 0.0
    before = [param.detach().clone() for param in state.agent.parameters()]
    blank = blank_batch(ppo.Batch, state.envs, "cpu")
    state.calls.step(blank._replace(advantages=torch.randn(len(blank.values)), returns=torch.ones(len(blank.values))))
    assert all(torch.equal(one, other) for one, other in zip(before, state.agent.parameters(), strict=True))


@needs_compiler
def test_a_compiled_run_repeats_byte_by_byte() -> None:
    args = replace(AGENTS["ppo"][1], compile="on", eval_episodes=2)
    recorders = [SilentRecorder(), SilentRecorder()]
    agents = [ppo.train(args, make("random"), recorder) for recorder in recorders]
    assert all(recorder.compiled for recorder in recorders)
    for one, other in zip(agents[0].parameters(), agents[1].parameters(), strict=True):
        assert one.detach().numpy().tobytes() == other.detach().numpy().tobytes()
    assert np.array_equal(recorders[0].returns, recorders[1].returns)


@needs_compiler
def test_a_step_that_can_t_be_compiled_falls_back_with_one_warning() -> None:
    def branching(agent: Any, optimizer: Any, mb: Any, args: Any) -> torch.Tensor:
        return torch.ones(3) if float(mb.values.sum()) > 0 else torch.zeros(3)

    args = replace(AGENTS["ppo"][1], compile="on")
    state = ppo.open_state(replace(args, compile="off"))
    blank = blank_batch(ppo.Batch, state.envs, "cpu")
    with pytest.warns(CompileWarning, match="training goes on without") as caught:
        calls = choose_calls(branching, state.agent, state.optimizer, blank, torch.zeros(2, 4), args)
    assert len(caught) == 1
    assert not calls.compiled
    assert torch.equal(calls.step(blank), torch.zeros(3))


def test_a_compiler_that_fails_costs_only_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no such compiler")

    monkeypatch.setattr(compiled, "compile_step", broken)
    recorder = SilentRecorder()
    with pytest.warns(CompileWarning, match="no such compiler"):
        ppo.train(replace(AGENTS["ppo"][1], compile="on", eval_episodes=1), make("none"), recorder)
    assert not recorder.compiled
    assert len(recorder.rounds) == 2


@pytest.mark.parametrize(
    ("change", "compiler", "expected"),
    [
        ({"total_steps": 500_000}, True, True),
        ({"total_steps": 512}, True, False),
        ({"total_steps": 500_000}, False, False),
    ],
)
def test_auto_compiles_long_runs_where_there_is_a_compiler(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], compiler: bool, expected: bool
) -> None:
    monkeypatch.setattr(compiled, "has_compiler", lambda: compiler)
    assert pays(replace(AGENTS["ppo"][1], **change)) is expected


@pytest.mark.parametrize("module", [ppo, ppo_continuous, ppo_minigrid, ppo_atari])
def test_a_blank_minibatch_has_the_columns_of_a_rollout(module: ModuleType) -> None:
    state = module.open_state(AGENTS[module.__name__.rpartition(".")[2]][1])
    rollout, _ = module.collect(state, AGENTS[module.__name__.rpartition(".")[2]][1], SilentRecorder())
    for blank, column in zip(blank_batch(module.Batch, state.envs, "cpu"), module.columns(rollout), strict=True):
        assert (blank.dtype, blank.shape[1:]) == (column.dtype, column.shape[1:])
