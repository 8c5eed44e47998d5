"""How does a whole optimizer step become a single compiled function?

A step of PPO on a small network is some two hundred tiny operations, and on a CPU calling them costs more than their
arithmetic. Here the agent's own Python function is traced once over stand-ins for its parameters, the optimizer's
state, the learning rate and a minibatch of any size, and Inductor makes one function of it. What was compiled is kept
on disk, so other processes load it. Losses and parameters agree with the eager step to float32 rounding.
"""

import shutil
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
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
PlainStep = Callable[[Any, torch.optim.Optimizer, Any, Any], Tensor]
"""(agent, optimizer, minibatch, args) -> mean losses [3]"""
Policy = Callable[[Tensor], Any]
"""observations [N, *obs] -> action distribution; N is the number of environments"""


class CompileWarning(UserWarning):
    """Compiling failed; training goes on without."""


@dataclass
class Calls:
    """The two calls that training spends its time in, both compiled or both eager."""

    policy: Policy
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


def choose_calls(
    step: PlainStep, agent: nn.Module, optimizer: torch.optim.Optimizer, blank: Any, obs: Tensor, args: Any
) -> Calls:
    """The agent's policy and optimizer step, compiled if `args.compile` asks for it.

    Args:
        step: one plain optimizer step; nothing in it branches on the numbers in tensors.
        agent: the network; calling it gives the action distribution.
        optimizer: fused SGD without momentum, or fused Adam, with one group of all the agent's parameters.
        blank: a minibatch of BLANK_SIZE records, a NamedTuple of tensors; only shapes and dtypes count.
        obs: [N, *obs] observations of all environments; only shapes and dtypes count.
        args: the agent's settings.

    Warns:
        CompileWarning: compiling failed; the calls are eager.
    """
    eager = Calls(agent, lambda mb: step(agent, optimizer, mb, args), compiled=False)
    if not (pays(args) if args.compile == "auto" else args.compile == "on"):
        return eager
    try:
        return Calls(compile_policy(agent, obs), compile_step(step, agent, optimizer, blank, args), compiled=True)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        warnings.warn(f"compiling failed, training goes on without ({reason})", CompileWarning, stacklevel=2)
        return eager


def compile_policy(agent: nn.Module, obs: Tensor) -> Policy:
    """The agent's forward pass as one function; raises whatever the compiler raises."""
    params = list(agent.parameters())

    def whole(*flat: Tensor) -> Any:
        with swapped(agent, flat[:-1]):
            return agent(flat[-1])

    stand_ins = StandIns()
    compiled = compile_function(whole, stand_ins, [*map(stand_ins.fixed, params), stand_ins.fixed(obs)])
    head = [param.detach() for param in params]
    return lambda obs: compiled(*head, obs)


def compile_step(step: PlainStep, agent: nn.Module, optimizer: torch.optim.Optimizer, blank: Any, args: Any) -> Step:
    """The optimizer step as one function; raises whatever the compiler raises."""
    open_optimizer_state(optimizer)
    group = optimizer.param_groups[0]
    params = list(agent.parameters())
    moments = [tensor for param in params for tensor in optimizer.state[param].values()]
    names = [list(optimizer.state[param]) for param in params]
    lr = torch.tensor(group["lr"], device=params[0].device)
    fixed = [*params, *moments, lr]

    def whole(*flat: Tensor) -> Tensor:
        """The step as a function of everything that it reads; parameters and moments change in place."""
        own, its_moments, its_lr = flat[: len(params)], iter(flat[len(params) :]), flat[len(fixed) - 1]
        twin = type(optimizer)(own, **optimizer.defaults)
        twin.param_groups[0]["lr"] = its_lr
        for param, of_param in zip(own, names, strict=True):
            twin.state[param] = {name: next(its_moments) for name in of_param}
        with swapped(agent, own):
            return step(agent, twin, type(blank)(*flat[len(fixed) :]), args)

    stand_ins = StandIns()
    inputs = [*map(stand_ins.fixed, fixed), *map(stand_ins.of_any_number, blank)]
    compiled = compile_function(whole, stand_ins, inputs)
    head = [tensor.detach() for tensor in fixed]

    def compiled_step(mb: Any) -> Tensor:
        lr.fill_(group["lr"])
        with torch.no_grad():
            losses: Tensor = compiled(*head, *mb)
        return losses

    return compiled_step


class StandIns:
    """Tensors without data to trace with."""

    def __init__(self) -> None:
        from torch._subclasses import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.mode = FakeTensorMode(shape_env=ShapeEnv())
        self.count = 0

    def fixed(self, tensor: Tensor) -> Any:
        """One of the same shape."""
        return self._like(tensor, any_number=False)

    def of_any_number(self, column: Tensor) -> Any:
        """One of the same shape but for the number of records."""
        return self._like(column, any_number=True)

    def _like(self, tensor: Tensor, *, any_number: bool) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        sizes: Any = [DimDynamic.STATIC] * tensor.dim()
        if any_number:
            sizes[0] = DimDynamic.DYNAMIC
        self.count += 1
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        return self.mode.from_tensor(tensor, symbolic_context=context, source=ConstantSource(f"input_{self.count}"))


def compile_function(function: Callable[..., Any], stand_ins: StandIns, inputs: list[Any]) -> Callable[..., Any]:
    """Trace a function of flat tensors with stand-ins and compile what it does, gradients included."""
    from torch._inductor import config, standalone_compile  # takes seconds to import, which eager runs need not pay
    from torch.fx.experimental.proxy_tensor import make_fx

    with stand_ins.mode:
        graph = make_fx(function, decomposition_table=fused_optimizers())(*inputs)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    with torch.no_grad(), warnings.catch_warnings(), config.patch(compile_threads=1):
        warnings.simplefilter("ignore")  # of the compiler's own passes
        compiled: Callable[..., Any] = standalone_compile(graph, inputs, dynamic_shapes="from_graph")
    return compiled


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
