"""Every method against brute force, by hand, or against another method that it must equal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from algos import ppo, ppo_minigrid
from algos.training.recorder import SilentRecorder
from filters.api import Objective, Params, Rollout, ScoreFilter, run_filter
from filters.check import make_case
from filters.dtv import DTV, DTVLambda, DTVLoo
from filters.heuristics import (
    AdvantageError,
    Reward,
    SmallAdvantage,
    TDError,
    discounted_returns,
    monte_carlo_advantages,
)
from filters.i_ppo import IPPO
from filters.iif import IIF
from filters.registry import make
from filters.uniform import RandomFilter, RandomMatched

Case = tuple[Rollout, Objective]


def agent_case(name: str) -> Case:
    """A rollout of an agent in float64: the MLP, and the convolutional trunk with separate and with linear heads."""
    module: Any = ppo if name == "mlp" else ppo_minigrid
    args: Any = ppo.Args(env_id="Acrobot-v1", num_envs=3, num_steps=20, minibatch_size=16)
    if name != "mlp":
        hidden = (64, 64) if name == "conv" else ()
        args = ppo_minigrid.Args("MiniGrid-Empty-5x5-v0", num_envs=3, num_steps=20, minibatch_size=16, hidden=hidden)
    state = module.open_state(args)
    rollout, _ = module.collect(state, args, SilentRecorder())
    agent = state.agent.double()
    rollout = in_double(rollout, lambda r: module.log_prob(agent(r.obs), r.actions))
    # Cut the fragments once more, so that there are units of several lengths.
    return rollout, module.open_objective(agent, cut(rollout), args)


def in_double(rollout: Rollout, logprobs: Callable[[Rollout], Tensor]) -> Rollout:
    floats = [n for n, t in vars(rollout).items() if isinstance(t, Tensor) and t.dtype == torch.float32]
    rollout = replace(rollout, **{n: getattr(rollout, n).double() for n in floats})
    with torch.no_grad():
        return replace(rollout, logprobs=logprobs(rollout))


def cut(rollout: Rollout) -> Rollout:
    return replace(rollout, trajectory=ragged(rollout.n))


def ragged(n: int) -> Tensor:
    """Units of 1, 2, 3, … records, interleaved."""
    sizes = torch.arange(1, n)
    unit = torch.arange(n - 1).repeat_interleave(sizes)[:n]
    return unit[torch.randperm(n, generator=torch.Generator().manual_seed(5))].unique(return_inverse=True)[1]


def gaussian_case() -> Case:
    """A policy for continuous actions: mean from a network, a scale that is a parameter of its own."""
    case = make_case(n=60)
    rng = torch.Generator().manual_seed(1)
    obs, actions = torch.randn(60, 4, generator=rng).double(), torch.randn(60, 2, generator=rng).double()
    params: Params = {
        "mean.weight": torch.randn(2, 4, generator=rng).double(),
        "mean.bias": torch.zeros(2).double(),
        "log_std": torch.tensor([-0.3, 0.2]).double(),
    }

    def logprob(params: Params, obs: Tensor, actions: Tensor) -> Tensor:
        mean = torch.nn.functional.linear(obs, params["mean.weight"], params["mean.bias"])
        std = params["log_std"].exp()
        return (-((actions - mean) / std).square() / 2 - params["log_std"]).sum(-1)

    rollout = replace(case.rollout, obs=obs, actions=actions, advantages=case.rollout.advantages.double())
    rollout = replace(cut(rollout), logprobs=logprob(params, obs, actions))
    return rollout, objective_of(rollout, params, logprob)


def objective_of(rollout: Rollout, params: Params, logprob: Callable[..., Tensor]) -> Objective:
    def per_record(params: Params) -> Tensor:
        ratio = (logprob(params, rollout.obs, rollout.actions) - rollout.logprobs).exp()
        a = (rollout.advantages - rollout.advantages.mean()) / (rollout.advantages.std() + 1e-8)
        return torch.max(-a * ratio, -a * ratio.clamp(0.8, 1.2))

    def target(params: Params) -> Tensor:
        return -(rollout.advantages * logprob(params, rollout.obs, rollout.actions)).mean()

    return Objective(params=params, per_record=per_record, target=target, logprob=logprob)


def made(name: str) -> Case:
    if name == "gaussian":
        return gaussian_case()
    rollout, objective = agent_case(name)
    return cut(rollout), objective


CASES = ["mlp", "conv", "conv-linear-heads", "gaussian"]
VARIANTS: dict[str, Callable[[Rollout], dict[str, Tensor]]] = {
    "ragged units": lambda r: {},
    "one unit": lambda r: {"trajectory": torch.zeros(r.n, dtype=torch.int64)},
    "units of one record": lambda r: {"trajectory": torch.arange(r.n)},
}


def brute(objective: Objective) -> tuple[Tensor, Tensor]:
    """Gradients of every record's loss [n, P] and of the target [P], one backward pass each."""
    leaves = {name: p.clone().requires_grad_() for name, p in objective.params.items()}

    def flat(scalar: Tensor) -> Tensor:
        grads = torch.autograd.grad(
            scalar, list(leaves.values()), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return torch.cat([g.flatten() for g in grads])

    return torch.stack([flat(loss) for loss in objective.per_record(leaves)]), flat(objective.target(leaves))


def unit_gradients(rollout: Rollout, objective: Objective) -> Tensor:
    records, _ = brute(objective)
    return torch.stack([records[rollout.trajectory == j].mean(0) for j in range(rollout.num_trajectories)])


def close(found: Tensor, expected: Tensor) -> None:
    """Within 1e-8 of the largest score; a score near zero is a difference of large numbers."""
    scale = float(expected.abs().max())
    assert scale > 0
    assert float((found - expected).abs().max()) <= 1e-8 * scale


def scores(filter: ScoreFilter, rollout: Rollout, objective: Objective) -> Tensor:
    found = filter.select(rollout, objective).scores
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_dtv_family_equals_brute_force(name: str, variant: str) -> None:
    rollout, objective = made(name)
    rollout = replace(rollout, **VARIANTS[variant](rollout))
    g = unit_gradients(rollout, objective)
    b = g.shape[0]
    close(scores(DTV(), rollout, objective), g @ g.mean(0))
    others = (g.sum(0) - g) / max(b - 1, 1)
    loo = scores(DTVLoo(), rollout, objective)
    if b == 1:
        assert loo.tolist() == [0]
    else:
        close(loo, (g * others).sum(1))
    lam = 0.3
    close(scores(DTVLambda(lam=lam), rollout, objective), (lam * g.square().sum(1) + (g * (g.sum(0) - g)).sum(1)) / b)
    terms = DTV().select(rollout, objective).terms
    close(terms["self"], g.square().sum(1) / b)
    close(terms["self"] + terms["cross"], g @ g.mean(0))


@pytest.mark.parametrize("name", CASES)
def test_iif_and_i_ppo_equal_brute_force(name: str) -> None:
    rollout, objective = made(name)
    records, target = brute(objective)
    close(scores(IIF(), rollout, objective), records @ target)
    close(scores(IPPO(), rollout, objective), unit_gradients(rollout, objective) @ target)


@pytest.mark.parametrize("name", ["mlp", "conv"])
@pytest.mark.parametrize("filter", [IIF(fraction=1.0), DTV(), DTVLoo(), DTVLambda(), IPPO()])
def test_equal_advantages_and_scores_that_are_all_negative(name: str, filter: ScoreFilter) -> None:
    rollout, objective = made(name)
    calm = replace(rollout, advantages=torch.ones_like(rollout.advantages))
    assert bool(torch.isfinite(scores(filter, calm, objective)).all())
    against = replace(objective, target=lambda params: -objective.per_record(params).mean())
    selection = IIF(fraction=1.0).select(rollout, against)
    assert selection.scores is not None
    assert torch.equal(selection.keep, selection.scores >= 0)


@pytest.mark.parametrize("name", CASES)
def test_identities_of_the_dtv_family(name: str) -> None:
    rollout, objective = made(name)
    dtv, b = DTV().select(rollout, objective), rollout.num_trajectories
    assert dtv.scores is not None
    close(scores(DTVLoo(), rollout, objective), b / (b - 1) * (dtv.scores - dtv.terms["self"]))
    assert torch.equal(scores(DTVLambda(lam=1), rollout, objective), dtv.scores)
    zero, loo = scores(DTVLambda(lam=0), rollout, objective), scores(DTVLoo(), rollout, objective)
    assert torch.equal(zero.sign(), loo.sign())
    assert bool((dtv.scores >= loo * (b - 1) / b).all()), "the self-term never lowers a score"


@pytest.mark.parametrize("name", CASES)
def test_iif_with_all_negatives_is_dtv_on_records_under_equal_normalisation(name: str) -> None:
    """With f_return on normalised advantages, the target's gradient is the mean record gradient."""
    rollout, objective = made(name)
    rollout = replace(rollout, trajectory=torch.arange(rollout.n))
    same = replace(objective, target=lambda params: objective.per_record(params).mean())
    iif, dtv = IIF(fraction=1.0).select(rollout, same), DTV().select(rollout, objective)
    assert iif.scores is not None
    assert dtv.scores is not None
    close(iif.scores, dtv.scores)
    assert torch.equal(iif.keep, dtv.keep)
    assert not bool(iif.keep.all())


def test_dtv_drops_whole_trajectories_below_zero_and_keeps_the_best() -> None:
    filter = DTV(min_keep=0.5)
    assert filter.drop(torch.tensor([-1.0, 0.0, -3.0, 2.0])).tolist() == [True, False, True, False]
    assert filter.drop(torch.tensor([-1.0, -2.0, -3.0, -4.0, -5.0])).tolist() == [False, False, False, True, True]
    assert DTV().drop(torch.tensor([-1.0, 0.0])).tolist() == [True, False]
    case = make_case()
    selection = DTVLoo().select(case.rollout, case.objective)
    assert selection.scores is not None
    assert torch.equal(selection.keep, (selection.scores >= 0)[case.rollout.trajectory])


@pytest.mark.parametrize("spec", ["iif", "dtv", "dtv-loo", "dtv-lambda", "i-ppo"])
def test_a_gradient_that_is_not_finite_costs_its_own_unit_alone(spec: str) -> None:
    case = make_case()
    logprobs = case.rollout.logprobs.clone()
    logprobs[3] = -torch.inf
    rollout = replace(case.rollout, logprobs=logprobs)
    objective = objective_of(rollout, case.objective.params, case.objective.logprob)
    selection = run_filter(make(spec), rollout, objective)
    assert selection.unscorable == 1
    assert not bool(selection.keep[3])
    trajectory = rollout.trajectory == rollout.trajectory[3]
    assert bool(selection.keep[~trajectory].any())
    assert bool(selection.keep[trajectory].any()) == (spec == "iif")


def test_random_trajectories_go_whole() -> None:
    case = make_case()
    keep = RandomFilter(fraction=0.25, unit="trajectory").select(case.rollout, case.objective).keep
    per_unit = keep.reshape(8, 32)
    assert per_unit.all(1).sum() == 6
    assert per_unit.any(1).sum() == 6


def test_random_matched_drops_as_many_as_the_other_but_others() -> None:
    case = make_case()
    iif = IIF(fraction=1.0).select(case.rollout, case.objective).keep
    matched = RandomMatched(of=IIF(fraction=1.0)).select(case.rollout, case.objective).keep
    assert int(matched.sum()) == int(iif.sum()) < 256
    assert not torch.equal(matched, iif)
    assert RandomMatched(of=DTV()).apply == "mask"
    assert RandomMatched(of=IIF()).apply == "repack"


def test_random_matched_takes_the_task_s_defaults_of_the_other_filter() -> None:
    defaults = {"iif": {"fraction": 0.5}}
    assert make("random-matched", defaults) == RandomMatched(of=IIF(fraction=0.5))
    assert make("random-matched:of=iif", defaults) == RandomMatched(of=IIF(fraction=0.5))
    assert make("random-matched:of=iif:fraction=1;warmup=2", defaults) == RandomMatched(of=IIF(fraction=1, warmup=2))
    assert make("random-matched") == RandomMatched(of=IIF())


def with_columns(**columns: Any) -> Case:
    """The first records of a made-up rollout, with the given columns."""
    n = len(next(iter(columns.values())))
    case = make_case(n=n, trajectories=1)
    return replace(case.rollout, **{name: torch.as_tensor(value) for name, value in columns.items()}), case.objective


def dropped(filter: Any, case: Case) -> list[int]:
    return (~filter.select(*case).keep).nonzero().flatten().tolist()


def test_small_advantages_go() -> None:
    case = with_columns(advantages=[0.5, -0.1, 2.0, 0.2, -3.0, 0.0, 1.0, -0.3])
    assert dropped(SmallAdvantage(fraction=0.25), case) == [1, 5]
    assert dropped(SmallAdvantage(fraction=0.24), case) == [5]
    assert dropped(SmallAdvantage(fraction=0), case) == []


def test_extreme_rewards_go_from_both_ends() -> None:
    rewards = [3.0, 0.0, 7.0, 1.0, 9.0, 5.0, 2.0, 4.0]
    assert dropped(Reward(fraction=0.5), with_columns(rewards=rewards)) == [1, 2, 3, 4]
    assert dropped(Reward(fraction=0.25), with_columns(rewards=rewards)) == [1, 4]
    assert dropped(Reward(fraction=0.24), with_columns(rewards=rewards)) == []
    case = with_columns(rewards=rewards, trajectory=[0, 0, 1, 1, 2, 2, 3, 3])  # returns 3, 8, 14, 6
    assert dropped(Reward(fraction=0.5, unit="trajectory"), case) == [0, 1, 6, 7]


def test_equal_rewards_are_ordered_at_random() -> None:
    rollout, objective = with_columns(rewards=[0.0] * 100)
    seen = {
        tuple(
            dropped(Reward(fraction=0.1), (replace(rollout, generator=torch.Generator().manual_seed(seed)), objective))
        )
        for seed in range(5)
    }
    assert len(seen) == 5
    assert all(len(gone) == 10 for gone in seen)


def test_td_error_draws_by_rank() -> None:
    """Over many draws of one record to drop, the chance to be the survivor follows (1/rank)^0.6."""
    rollout, objective = with_columns(td_errors=[0.1, -5.0, 0.5, 2.0])
    rng = torch.Generator().manual_seed(0)
    counts = torch.zeros(4)
    for _ in range(4000):
        counts += TDError(fraction=0.75).select(replace(rollout, generator=rng), objective).keep
    weight = torch.tensor([4.0, 1.0, 3.0, 2.0]) ** -0.6  # ranks of |δ|, the largest first
    assert (counts / counts.sum()).tolist() == pytest.approx((weight / weight.sum()).tolist(), abs=0.025)
    assert int(TDError(fraction=0.5).select(rollout, objective).keep.sum()) == 2


GAMMA = {"gamma": 0.5}


def repeated_states() -> Case:
    """Two fragments over two states: a goes A, A, B and ends; b goes A, B and is cut with V(s') = 8."""
    states = torch.tensor([[0.0], [0.0], [0.0], [1.0], [1.0]])
    rollout, objective = with_columns(
        rewards=[1.0, 2.0, 4.0, 8.0, 2.0],
        obs=states,
        actions=[0, 0, 1, 0, 0],
        trajectory=[0, 1, 0, 0, 1],
        values=[0.0, 0.0, 0.0, 3.0, 1.0],
        # at the ends: δ = 8 − 3 (terminated) and δ = 2 + 0.5 · 8 − 1 (cut)
        td_errors=[9.0, 9.0, 9.0, 5.0, 5.0],
        advantages=[1.0, 1.0, -1.0, 0.0, 1.0],
    )
    return replace(rollout, gamma=0.5), objective


def test_returns_and_monte_carlo_advantages_by_hand() -> None:
    rollout, _ = repeated_states()
    # fragment 0 is records 0, 2, 3: 8, 4 + 4 = 8, 1 + 4 = 5; fragment 1 is records 1, 4: 6, 2 + 3 = 5
    assert discounted_returns(rollout).tolist() == [5.0, 5.0, 8.0, 8.0, 6.0]
    # state 0: mean 6, action 0 mean 5, action 1 mean 8; state 1: action 0 alone
    assert monte_carlo_advantages(rollout).tolist() == [-1.0, -1.0, 2.0, 0.0, 0.0]


def test_advantages_of_the_wrong_sign_go() -> None:
    case = repeated_states()  # records 0, 1 and 2 differ in sign, by 2, 2 and 3
    assert dropped(AdvantageError(fraction=0.34), case) == [2]
    assert dropped(AdvantageError(fraction=1.0), case) == [0, 1, 2]
    assert dropped(AdvantageError(fraction=0.34, heuristic=2), case) == [2]
    assert dropped(AdvantageError(fraction=0.0), case) == []
    rollout, objective = case
    larger = replace(rollout, advantages=torch.tensor([9.0, 1.0, -1.0, 0.0, 1.0]))
    assert dropped(AdvantageError(fraction=0.34), (larger, objective)) == [0]
    nothing_repeats = replace(rollout, obs=torch.arange(5.0).reshape(5, 1))
    assert dropped(AdvantageError(fraction=1.0), (nothing_repeats, objective)) == []
