"""How do the gradients of all records, or of all trajectories, agree with a direction and with one another?

Exact, and never with n × P numbers in memory. Two ways lead there:

- `dots` is a Jacobian-vector product of the losses: any architecture, one forward pass that carries tangents.
- `align_units` keeps what one backward pass computes anyway (see `filters.gradients.factors`): a layer's gradient is a
  sum of outer products of its inputs and its output gradients, from which mean, dot products and norms of all units
  follow.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from filters.api import Params
from filters.gradients.factors import CHUNK, Capture, group_records, norms_and_sum

MANY = 1024
"""so many parameters without factors are worth a warning"""

Losses = Callable[[Params], Tensor]
"""params -> [n], one loss a record; a loss depends on its own record alone"""


def gradient(loss: Losses, params: Params) -> Params:
    """∇loss at `params`, in the same names and shapes; zeros where the loss does not depend on a parameter.

    Args:
        loss: params -> [] scalar.
        params: where to differentiate.
    """
    gradients: Params = torch.func.grad(loss)(params)
    return gradients


def dots(losses: Losses, params: Params, direction: Params) -> Tensor:
    """⟨∇ℓ_i, direction⟩ of every loss ℓ_i at once.

    Where an operator lacks forward-mode differentiation, the product is taken by differentiating a backward pass once
    more (exact, about twice as slow), and a warning says so once.

    Args:
        losses: params -> [m] one loss a unit.
        params: where to differentiate.
        direction: the vector, in the names and shapes of `params`.

    Returns:
        [m], in the dtype of the losses; -inf for a loss whose product is not finite, which a ScoreFilter never keeps.
    """
    try:
        products: Tensor = torch.func.jvp(losses, (params,), (direction,))[1]
    except (NotImplementedError, RuntimeError) as error:
        if "forward AD" not in str(error) and "jvp" not in str(error):
            raise
        warnings.warn(f"no forward-mode differentiation ({error}); using two backward passes", stacklevel=2)
        products = _dots_by_double_backward(losses, params, direction)
    return torch.where(products.isfinite(), products, -torch.inf)


def _dots_by_double_backward(losses: Losses, params: Params, direction: Params) -> Tensor:
    """⟨Σ_i v_i ∇ℓ_i, direction⟩ is linear in v; its derivative by v is the wanted product."""
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    values = losses(leaves)
    weights = torch.ones_like(values, requires_grad=True)
    pulled = torch.autograd.grad(
        values, list(leaves.values()), weights, create_graph=True, materialize_grads=True, allow_unused=True
    )
    product = sum((p * direction[name]).sum() for name, p in zip(leaves, pulled, strict=True))
    assert isinstance(product, Tensor)
    return torch.autograd.grad(product, weights)[0]


def mean_by_unit(values: Tensor, unit: Tensor, units: int) -> Tensor:
    """Mean of `values` [n] over the records of each unit, [U]."""
    sums = values.new_zeros(units).index_add_(0, unit, values)
    return sums / unit.bincount(minlength=units)


@dataclass(frozen=True)
class Alignment:
    """How the gradients g_j of U units agree with their mean and with themselves.

    g_j is the gradient of the mean loss over unit j's records. Units whose gradient is not finite take no part: the
    mean is over the other b units, and their own numbers are NaN.
    """

    dot: Tensor
    """[U] ⟨g_j, (1/b) Σ_i g_i⟩"""
    square_norm: Tensor
    """[U] ‖g_j‖²"""
    finite: Tensor
    """[U] bool"""

    @property
    def b(self) -> int:
        """Units that take part."""
        return int(self.finite.sum())


def align_units(losses: Losses, params: Params, unit: Tensor) -> Alignment:
    """Dot products with the mean unit gradient, and squared norms, of all unit gradients; exact.

    One forward and one backward pass, then one more product a layer for each of mean, dot products and norms.
    Parameters that are not used by a plain linear layer or 2-d convolution take a Jacobian-vector product each: cheap
    for the scale of a Gaussian policy, slow (and said so once) where there are many of them.

    Args:
        losses: params -> [n] one loss a record.
        params: where to differentiate.
        unit: [n] int64, the unit of each record, 0..U-1, none empty.
    """
    units = _Units(losses, params, unit)
    square_norm, mean = units.norms_and_mean()
    dot = units.dot(mean)
    for gradients in units.loose():
        dot += gradients @ gradients[units.finite].mean(0)
        square_norm += gradients.square().sum(1)
    return Alignment(
        dot=torch.where(units.finite, dot, torch.nan),
        square_norm=torch.where(units.finite, square_norm, torch.nan),
        finite=units.finite,
    )


class _Units:
    """The unit gradients in factored form, after one forward and one backward pass."""

    def __init__(self, losses: Losses, params: Params, unit: Tensor) -> None:
        self.unit, self.count = unit, int(unit.max()) + 1
        self.losses, self.params = losses, params
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        with Capture(leaves) as captured:
            values = losses(leaves)
        captured.settle(values.shape[0])
        self.uses, self.loose_names = captured.uses, sorted(captured.loose)
        self.weights = (1 / unit.bincount().to(values.dtype))[unit]  # [n]: a unit's loss is its records' mean
        if sum(params[name].numel() for name in self.loose_names) > MANY:
            warnings.warn(
                f"no factors for {', '.join(self.loose_names)}; differentiating them one by one", stacklevel=4
            )
        small = self.count * sum(params[name].numel() for name in self.loose_names) <= CHUNK
        self._loose = list(self._make_loose()) if small else None
        self._backward(values)

    def _backward(self, values: Tensor) -> None:
        """Find every record's output gradients, scaled to its unit's mean, and take out what is not finite."""
        outs = [use.out for use in self.uses]
        errors: tuple[Tensor, ...] = ()
        if outs:
            errors = torch.autograd.grad(values, outs, self.weights, allow_unused=True, materialize_grads=True)
        finite = values.detach().isfinite()
        for use, error in zip(self.uses, errors, strict=True):
            finite &= error.flatten(1).sum(1).isfinite() & use.input.flatten(1).sum(1).isfinite()
            use.error = error
        self.finite = self._by_unit((~finite).float()) == 0
        for gradients in self.loose():
            self.finite &= gradients.isfinite().all(1)
        if not bool(self.finite.all()):
            gone = (~self.finite[self.unit]).nonzero().flatten()
            for use in self.uses:
                use.error = use.error.index_fill(0, gone, 0)
                use.input = use.input.index_fill(0, gone, 0)

    def _by_unit(self, values: Tensor) -> Tensor:
        """Sums of values [n, …] over the records of each unit [U, …]."""
        return values.new_zeros(self.count, *values.shape[1:]).index_add_(0, self.unit, values)

    def norms_and_mean(self) -> tuple[Tensor, Params]:
        """‖g_j‖² [U] and (1/b) Σ_j g_j over the b finite units, by the parameters with factors.

        A tied parameter's gradient is the sum over its uses.
        """
        square_norm, sums = self.weights.new_zeros(self.count), {}
        groups = group_records(self.unit)
        for name in dict.fromkeys(use.weight for use in self.uses):
            norms, sums[name] = norms_and_sum([use for use in self.uses if use.weight == name], groups)
            square_norm += norms
        for name in dict.fromkeys(use.bias for use in self.uses if use.bias):
            per_record = torch.stack([use.bias_gradient() for use in self.uses if use.bias == name]).sum(0)
            square_norm += self._by_unit(per_record).square().sum(1)
            sums[name] = per_record.sum(0)
        return square_norm, {name: total / self.finite.sum().clamp(min=1) for name, total in sums.items()}

    def dot(self, direction: Params) -> Tensor:
        """⟨g_j, direction⟩ [U]: each layer's output, were the direction its weights, times its output gradients."""
        dots = torch.zeros_like(self.weights)
        for use in self.uses:
            out = use.forward(direction[use.weight], direction[use.bias] if use.bias else None)
            dots += (out * use.error).flatten(1).sum(1)
        return self._by_unit(dots)

    def loose(self) -> Iterable[Tensor]:
        """Unit gradients [U, p] by the parameters without factors, some at a time; kept only if they are few."""
        return self._make_loose() if self._loose is None else self._loose

    def _make_loose(self) -> Iterator[Tensor]:
        step = max(1, CHUNK // (64 * self.weights.shape[0]))  # 64: about the width of what carries the tangents
        for name in self.loose_names:
            parameter = self.params[name]
            basis = torch.eye(parameter.numel(), dtype=parameter.dtype, device=parameter.device)
            for part in basis.split(step):
                yield self._by_unit((self._products(name, part.reshape(-1, *parameter.shape)) * self.weights).mT)

    def _products(self, name: str, directions: Tensor) -> Tensor:
        """[p, n] products of every record's gradient with p directions of one parameter."""

        def losses(params: Params) -> Tensor:
            return self.losses(self.params | params)

        here = {name: self.params[name]}
        return torch.stack([dots(losses, here, {name: direction}) for direction in directions])
