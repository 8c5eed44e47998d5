"""How does one optimizer step become a single compiled function?

A step of PPO on a small network is some two hundred tiny operations, and on a CPU calling them costs more than their
arithmetic. Here the agent's own Python function is traced once over stand-ins for its parameters, the optimizer's
state, the learning rate and a minibatch of any size, and Inductor makes one function of it. What was compiled is kept
on disk, so other processes load it. Losses and parameters agree with the eager step to float32 rounding.
"""

import shutil
import sysconfig
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

Compile = Literal["auto", "on", "off"]
"""auto compiles where it pays: on a CPU with a C++ compiler, for runs of many steps"""

WORTH_IT = 3000
"""optimizer steps in a run that repay loading what another process compiled; compiling takes four times as many"""
BLANK_SIZE = 61
"""records of the minibatch to trace with; a number that no network is wide, so sizes can't be mixed up"""

Step = Callable[[Any], Tensor]
"""minibatch -> mean losses [3]; changes the parameters"""


class CompileWarning(UserWarning):
    """Compiling failed; training goes on without."""


@dataclass
class Stepping:
    """How a step is made: compiled or eagerly."""

    step: Step
    compiled: bool


def pays(args: Any) -> bool:
    """What `auto` means for an agent's settings on this machine."""
    steps = args.rounds * args.update_epochs * (args.batch_size // args.minibatch_size)
    return args.device == "cpu" and steps >= WORTH_IT and has_compiler()


def has_compiler() -> bool:
    """Whether there is what Inductor needs: a C++ compiler and Python's headers."""
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return headers.is_file() and any(shutil.which(name) for name in ("g++", "clang++"))


def choose_step(
    step: Callable[[Any, torch.optim.Optimizer, Any, Any], Tensor],
    agent: nn.Module,
    optimizer: torch.optim.Optimizer,
    blank: Any,
    args: Any,
) -> Stepping:
    """The agent's step on its parameters, compiled if `args.compile` asks for it.

    Args:
        step: (agent, optimizer, minibatch, args) -> mean losses [3]; one plain step that nothing in it branches on.
        agent: the network.
        optimizer: fused SGD without momentum, or fused Adam, with one group of all the agent's parameters.
        blank: a minibatch of BLANK_SIZE records, a NamedTuple of tensors; only shapes and dtypes count.
        args: the agent's settings.

    Warns:
        CompileWarning: compiling failed; the step is eager.
    """

    def eager(mb: Any) -> Tensor:
        return step(agent, optimizer, mb, args)

    if not (pays(args) if args.compile == "auto" else args.compile == "on"):
        return Stepping(eager, compiled=False)
    try:
        return Stepping(compile_step(step, agent, optimizer, blank, args), compiled=True)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        warnings.warn(f"compiling failed, training goes on without ({reason})", CompileWarning, stacklevel=2)
        return Stepping(eager, compiled=False)


def compile_step(
    step: Callable[[Any, torch.optim.Optimizer, Any, Any], Tensor],
    agent: nn.Module,
    optimizer: torch.optim.Optimizer,
    blank: Any,
    args: Any,
) -> Step:
    """Trace and compile `step`; see `choose_step`. Raises whatever the compiler raises."""
    from torch._inductor import standalone_compile  # takes seconds to import, which eager runs need not pay
    from torch.fx.experimental.proxy_tensor import make_fx

    open_optimizer_state(optimizer)
    group = optimizer.param_groups[0]
    params = list(agent.parameters())
    moments = [tensor for param in params for tensor in optimizer.state[param].values()]
    lr = torch.tensor(group["lr"], device=params[0].device)
    fixed = [*params, *moments, lr]
    names = {param: list(optimizer.state[param]) for param in params}

    def whole(*flat: Tensor) -> Tensor:
        """The step as a function of everything that it reads; parameters and moments change in place."""
        own, its_moments, its_lr = flat[: len(params)], iter(flat[len(params) :]), flat[len(fixed) - 1]
        twin = type(optimizer)(own, **optimizer.defaults)
        twin.param_groups[0]["lr"] = its_lr
        for param, one in zip(params, own, strict=True):
            twin.state[one] = {name: next(its_moments) for name in names[param]}
        mb = type(blank)(*flat[len(fixed) :])
        with swapped(agent, own):
            return step(agent, twin, mb, args)

    mode, stand_ins = make_stand_ins(fixed, blank)
    with mode:
        graph = make_fx(whole, decomposition_table=fused_optimizers())(*stand_ins)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    with torch.no_grad(), quiet_compiler():
        compiled = standalone_compile(graph, stand_ins, dynamic_shapes="from_graph")
    head = [tensor.detach() for tensor in fixed]

    def compiled_step(mb: Any) -> Tensor:
        lr.fill_(group["lr"])
        with torch.no_grad():
            losses: Tensor = compiled(*head, *mb)
        return losses

    return compiled_step


def open_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Give the optimizer the state that its first step would make, all zero, and change nothing else."""
    group = optimizer.param_groups[0]
    lr, group["lr"] = group["lr"], 0.0
    for param in group["params"]:
        param.grad = torch.zeros_like(param)
    optimizer.step()
    optimizer.zero_grad()
    group["lr"] = lr
    for param in group["params"]:
        for tensor in optimizer.state[param].values():
            tensor.zero_()


@contextmanager
def swapped(agent: nn.Module, tensors: Sequence[Tensor]) -> Iterator[None]:
    """The agent with other tensors as its parameters, in their order."""
    slots = [(module, name) for module in agent.modules() for name in module._parameters]
    before = [module._parameters[name] for module, name in slots]
    by_param = dict(zip(agent.parameters(), tensors, strict=True))
    try:
        for (module, name), param in zip(slots, before, strict=True):
            module._parameters[name] = None if param is None else by_param[param]  # type: ignore[assignment]
        yield
    finally:
        for (module, name), param in zip(slots, before, strict=True):
            module._parameters[name] = param


def make_stand_ins(fixed: Iterable[Tensor], blank: Iterable[Tensor]) -> tuple[Any, list[Any]]:
    """Tensors without data: the fixed ones of their shape, the minibatch's of any number of records."""
    from torch._dynamo.source import ConstantSource
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    mode = FakeTensorMode(shape_env=ShapeEnv())

    def stand_in(tensor: Tensor, name: str, *, any_number: bool) -> Tensor:
        sizes: Any = [DimDynamic.STATIC] * tensor.dim()
        if any_number:
            sizes[0] = DimDynamic.DYNAMIC
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        return mode.from_tensor(tensor, symbolic_context=context, source=ConstantSource(name))

    stand_ins = [stand_in(tensor, f"fixed_{i}", any_number=False) for i, tensor in enumerate(fixed)]
    stand_ins += [stand_in(tensor, f"column_{i}", any_number=True) for i, tensor in enumerate(blank)]
    return mode, stand_ins


def fused_optimizers() -> dict[Any, Callable[..., None]]:
    """The fused updates of SGD and Adam as plain operations, which Inductor can merge with what comes before."""
    aten: Any = torch.ops.aten
    return {aten._fused_sgd_.tensor_lr: sgd, aten._fused_adam_.tensor_lr: adam}


def sgd(params: Sequence[Tensor], grads: Sequence[Tensor], *_: Any, lr: Tensor, **__: Any) -> None:
    """θ ← θ − lr · g, without momentum."""
    for param, grad in zip(params, grads, strict=True):
        param.sub_(lr * grad)


def adam(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    means: Sequence[Tensor],
    squares: Sequence[Tensor],
    _: Sequence[Tensor],
    counts: Sequence[Tensor],
    *,
    lr: Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    **__: Any,
) -> None:
    """Kingma & Ba 2015, algorithm 1, with ε outside the root; `counts` are already those of this step."""
    for param, grad, mean, square, count in zip(params, grads, means, squares, counts, strict=True):
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = (square / (1 - beta2**count)).sqrt() + eps
        param.sub_(lr / (1 - beta1**count) * mean / scale)


@contextmanager
def quiet_compiler() -> Iterator[None]:
    """Without helper processes, and without the warnings that the compiler's own passes give."""
    from torch._inductor import config

    with warnings.catch_warnings(), config.patch(compile_threads=1):
        warnings.simplefilter("ignore")
        yield
