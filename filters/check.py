"""Does a filter keep the contract? One function per clause; `python -m filters.check NAME` tries them all."""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro
from torch import Tensor
from torch.nn.functional import linear

from filters.api import Filter, Objective, Params, Rollout, Selection, ask
from filters.cost import best_seconds, peak_memory
from filters.errors import FilterError, UsageError, run_command
from filters.registry import make

ROUNDS = (0, 7)
"""rounds that every clause is tried in, so that a warm-up hides nothing"""


class ContractError(FilterError):
    """A clause of the contract does not hold; the message names what was got and the usual cause."""


@dataclass(frozen=True)
class Case:
    """A made-up rollout and the objective on it."""

    rollout: Rollout
    objective: Objective


def make_case(*, round: int = 7, n: int = 256, trajectories: int = 8, device: str = "cpu", seed: int = 0) -> Case:
    """A rollout of random numbers under a small tanh policy: n records in `trajectories` fragments of equal length."""
    rng = torch.Generator().manual_seed(seed)
    shapes = {"hidden.weight": (64, 8), "hidden.bias": (64,), "out.weight": (4, 64), "out.bias": (4,)}
    params = {name: torch.randn(shape, generator=rng).mul(0.3).to(device) for name, shape in shapes.items()}
    obs = torch.randn(n, 8, generator=rng).to(device)
    actions = torch.randint(4, (n,), generator=rng).to(device)
    advantages, values = torch.randn(2, n, generator=rng).to(device)
    rollout = Rollout(
        obs=obs,
        actions=actions,
        logprobs=_logprob(params, obs=obs, actions=actions),
        values=values,
        rewards=torch.randn(n, generator=rng).to(device),
        advantages=advantages,
        returns=advantages + values,
        td_errors=torch.randn(n, generator=rng).to(device),
        trajectory=torch.arange(n, device=device) * trajectories // n,
        gamma=0.99,
        round=round,
        generator=torch.Generator(device).manual_seed(seed),
    )
    return Case(rollout, make_objective(params, rollout))


def make_objective(params: Params, rollout: Rollout) -> Objective:
    """The PPO policy loss of the case's policy, as the agents define it."""

    def logprob(params: Params, obs: Tensor, actions: Tensor) -> Tensor:
        return _logprob(params, obs=obs, actions=actions)

    def per_record(params: Params) -> Tensor:
        ratio = (logprob(params, rollout.obs, rollout.actions) - rollout.logprobs).exp()
        normalized = (rollout.advantages - rollout.advantages.mean()) / (rollout.advantages.std() + 1e-8)
        return torch.max(-normalized * ratio, -normalized * ratio.clamp(0.8, 1.2))

    def target(params: Params) -> Tensor:
        return -(rollout.advantages * logprob(params, rollout.obs, rollout.actions)).mean()

    return Objective(params=params, per_record=per_record, target=target, logprob=logprob)


def _logprob(params: Params, *, obs: Tensor, actions: Tensor) -> Tensor:
    hidden = torch.tanh(linear(obs, params["hidden.weight"], params["hidden.bias"]))
    logits = linear(hidden, params["out.weight"], params["out.bias"])
    return logits.log_softmax(-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def _with_rollout(case: Case, **columns: Any) -> Case:
    """The same case with some columns exchanged, its objective included."""
    rollout = replace(case.rollout, **columns)
    return Case(rollout, make_objective(case.objective.params, rollout))


def _run(filter: Filter, case: Case) -> Selection:
    return ask(filter, case.rollout, case.objective)


def check_answer(filter: Filter, device: str) -> None:
    """`select` returns a Selection: keep bool [n] on the rollout's device, scores free of NaN."""
    for round in ROUNDS:
        _run(filter, make_case(round=round, device=device))


def check_inputs_unchanged(filter: Filter, device: str) -> None:
    """Nothing in the rollout or the parameters is changed in place."""
    for round in ROUNDS:
        case = make_case(round=round, device=device)
        columns = {f.name: getattr(case.rollout, f.name) for f in fields(Rollout)}
        tensors = {name: value for name, value in columns.items() if isinstance(value, Tensor)} | case.objective.params
        before = {name: value.clone() for name, value in tensors.items()}
        _run(filter, case)
        changed = [name for name, value in tensors.items() if not torch.equal(value, before[name])]
        if changed:
            raise ContractError(
                f"changed {', '.join(changed)} in place; clone before writing (watch for sub_, sort_ …)"
            )


def check_global_random_state(filter: Filter, device: str) -> None:
    """The global random states of torch, NumPy and Python stay as they are."""
    for round in ROUNDS:
        before = _global_states()
        _run(filter, make_case(round=round, device=device))
        changed = [name for name, state in _global_states().items() if state != before[name]]
        if changed:
            raise ContractError(
                f"drew from or seeded the global random state of {', '.join(changed)}; "
                "pass generator=rollout.generator to every random function"
            )


def _global_states() -> dict[str, object]:
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": str(np.random.get_state()),  # noqa: NPY002  the legacy global state is what is being watched
        "python": random.getstate(),
    }


def check_deterministic(filter: Filter, device: str) -> None:
    """The same rollout with the same generator state gives the same answer."""
    for round in ROUNDS:
        first, second = (_run(filter, make_case(round=round, device=device)).keep for _ in range(2))
        if not torch.equal(first, second):
            raise ContractError(
                f"gave two answers to one rollout ({int((first != second).sum())} of {first.shape[0]} records differ); "
                "draw from rollout.generator alone and keep no state between calls"
            )


def check_keeps_something(filter: Filter, device: str) -> None:
    """At least one record is kept."""
    for round in ROUNDS:
        if not bool(_run(filter, make_case(round=round, device=device)).keep.any()):
            raise ContractError("kept none of 256 records; is the sign of the score right (higher is better)?")


def check_one_trajectory(filter: Filter, device: str) -> None:
    """A rollout of a single trajectory fragment works."""
    _run(filter, make_case(trajectories=1, device=device))


def check_one_record_trajectories(filter: Filter, device: str) -> None:
    """A rollout whose fragments are single records works."""
    _run(filter, make_case(n=64, trajectories=64, device=device))


def check_equal_advantages(filter: Filter, device: str) -> None:
    """A rollout whose advantages are all equal works."""
    case = make_case(device=device)
    _run(filter, _with_rollout(case, advantages=torch.ones_like(case.rollout.advantages)))


def check_non_finite_gradient(filter: Filter, device: str) -> None:
    """A record whose gradient is not finite does no harm: the answer stays valid."""
    case = make_case(device=device)
    logprobs = case.rollout.logprobs.clone()
    logprobs[3] = -torch.inf
    _run(filter, _with_rollout(case, logprobs=logprobs))


CLAUSES: dict[str, Callable[[Filter, str], None]] = {
    "answer": check_answer,
    "inputs unchanged": check_inputs_unchanged,
    "global random state": check_global_random_state,
    "deterministic": check_deterministic,
    "keeps something": check_keeps_something,
    "one trajectory": check_one_trajectory,
    "one-record trajectories": check_one_record_trajectories,
    "equal advantages": check_equal_advantages,
    "non-finite gradient": check_non_finite_gradient,
}


def check_filter(filter: str | Filter, device: str = "cpu") -> dict[str, str]:
    """Try every clause of the contract.

    Args:
        filter: a spec or a filter object.
        device: where the made-up rollouts live.

    Returns:
        The clauses that fail, each with the sentence that says what was got and the usual cause; empty if all hold.

    Raises:
        UsageError: if the spec names no filter.
    """
    chosen = make(filter) if isinstance(filter, str) else filter
    failures = {}
    for name, clause in CLAUSES.items():
        try:
            clause(chosen, device)
        except FilterError as error:
            failures[name] = str(error)
    return failures


def cost(filter: Filter, device: str = "cpu") -> tuple[float, float, float]:
    """Seconds and MiB of `select` on 2,048 made-up records, and seconds of one forward and backward pass there."""
    case = make_case(n=2048, trajectories=16, device=device)

    def backward() -> None:
        torch.func.grad(case.objective.target)(case.objective.params)

    def select() -> None:
        _run(filter, case)

    memory = float("nan") if device == "cuda" else peak_memory(select)  # a fork can't use the parent's CUDA
    return best_seconds(select, repeats=3), memory, best_seconds(backward, repeats=3)


def main(name: Annotated[str, tyro.conf.Positional], device: Literal["cpu", "cuda"] = "cpu") -> int:
    """Hold a filter against the contract; exit code 1 if a clause fails.

    Args:
        name: a filter spec, or an import path such as my_pkg.my_mod:MyFilter
        device: where the made-up rollouts live
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: this PyTorch finds no CUDA device; use --device cpu or install a CUDA build")
    torch.set_num_threads(1)
    filter = make(name)
    failures = check_filter(filter, device)
    for clause in CLAUSES:
        print(
            f"{'FAIL' if clause in failures else 'ok  '}  {clause}"
            + (f": {failures.get(clause)}" if clause in failures else "")
        )
    if "answer" not in failures:
        seconds, memory, unit = cost(filter, device)
        passes = f"{seconds / unit:.1f} forward and backward passes"
        print(f"      cost on 2,048 records: {seconds * 1e3:.1f} ms ({passes}), {memory:.1f} MiB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(run_command(lambda: tyro.cli(main, prog="python -m filters.check")))
