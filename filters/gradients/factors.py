"""How can the gradients of many records be held without n × P numbers? As the factors that a backward pass computes.

The gradient of a linear or convolutional layer's weight on record i is a sum of outer products, Σ_r e[i, r] ⊗ a[i, r]:
the layer's inputs a and output gradients e over its rows r (one for a linear layer, one a position for a convolution).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight
from torch.overrides import TorchFunctionMode

from filters.api import Params

CHUNK = 4_000_000
"""numbers that one step of a norm may hold at a time"""
LONG = 64
"""records from which on a unit's gradient is worth a call of its own"""


@dataclass(eq=False)
class Use:
    """One application of a weight by a linear layer."""

    weight: str
    bias: str | None
    shape: torch.Size
    """of the weight"""
    input: Tensor
    """[n, …, in]"""
    out: Tensor
    """[n, …, out], part of the graph"""
    error: Tensor = field(init=False)
    """as `out`: the gradient of each record's loss by the output, known after the backward pass"""

    def rows(self, records: Tensor) -> tuple[Tensor, Tensor]:
        """a [m, r, in] and e [m, r, out] of m records."""
        a, e = self.input[records], self.error[records]
        return a.reshape(a.shape[0], -1, a.shape[-1]), e.reshape(e.shape[0], -1, e.shape[-1])

    def weight_gradient(self, records: Tensor) -> Tensor:
        """Σ over the records of their gradients by the weight, in its shape."""
        a, e = self.input[records], self.error[records]
        return e.reshape(-1, e.shape[-1]).mT @ a.reshape(-1, a.shape[-1])

    def bias_gradient(self) -> Tensor:
        """[n, out] every record's gradient by the bias."""
        return self.error.reshape(self.error.shape[0], -1, self.error.shape[-1]).sum(1)

    def forward(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What the layer would have put out with another weight and bias."""
        return F.linear(self.input, weight, bias)


@dataclass(eq=False)
class Conv2dUse(Use):
    """One application of a weight by a 2-d convolution: input [n, in, H, W], out [n, out, H', W']."""

    geometry: dict[str, Any]
    """stride, padding and dilation"""

    def rows(self, records: Tensor) -> tuple[Tensor, Tensor]:
        """a [m, r, in · kernel] and e [m, r, out] of m records."""
        a = F.unfold(self.input[records], self.shape[2:], **self.geometry)
        return a.mT, self.error[records].flatten(2).mT

    def weight_gradient(self, records: Tensor) -> Tensor:
        """Σ over the records of their gradients by the weight, in its shape."""
        a, e = self.input[records], self.error[records]
        gradient: Tensor = conv2d_weight(a, self.shape, e, **self.geometry)
        return gradient

    def bias_gradient(self) -> Tensor:
        """[n, out] every record's gradient by the bias."""
        return self.error.flatten(2).sum(2)

    def forward(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What the layer would have put out with another weight and bias."""
        return F.conv2d(self.input, weight, bias, **self.geometry)


class Capture(TorchFunctionMode):
    """While active, notes every linear layer and 2-d convolution that uses one of `params` directly.

    Parameters that anything else reads end up in `loose`: their gradients have to be taken another way.
    """

    def __init__(self, params: Params) -> None:
        super().__init__()
        self.uses: list[Use] = []
        self.loose: set[str] = set()
        self._names = {id(p): name for name, p in params.items()}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func`, noting what it did with the parameters."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if not isinstance(out, Tensor | tuple | list):
            return out  # sizes, dtypes and the like: nothing to differentiate
        read = {name for value in _leaves((args, kwargs)) if (name := self._names.get(id(value)))}
        if read:
            use = LAYERS[func](self._names, out, *args, **kwargs) if func in LAYERS else None
            if use is None:
                self.loose |= read
            else:
                self.uses.append(use)
        return out

    def settle(self, n: int) -> None:
        """Keep only the uses that can be told apart by record: n outputs, and no parameter that is loose elsewhere."""
        while bad := [use for use in self.uses if use.out.shape[0] != n or {use.weight, use.bias} & self.loose]:
            self.loose |= {name for use in bad for name in (use.weight, use.bias) if name}
            self.uses = [use for use in self.uses if use not in bad]


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, tuple | list):
        yield tree
        return
    for branch in tree:
        yield from _leaves(branch)


def _linear(
    names: dict[int, str], out: Tensor, input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Use | None:
    if id(weight) not in names or (bias is not None and id(bias) not in names):
        return None
    return Use(names[id(weight)], names.get(id(bias)), weight.shape, input.detach(), out)


def _conv2d(
    names: dict[int, str],
    out: Tensor,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Use | None:
    plain = _linear(names, out, input, weight, bias)
    if plain is None or groups != 1 or isinstance(padding, str) or input.dim() != 4:
        return None
    geometry = {"stride": stride, "padding": padding, "dilation": dilation}
    return Conv2dUse(plain.weight, plain.bias, plain.shape, plain.input, out, geometry=geometry)


LAYERS: dict[Any, Callable[..., Use | None]] = {F.linear: _linear, F.conv2d: _conv2d}


def group_records(unit: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Group units of like size, so that padding them to one size costs less than a factor of two.

    Args:
        unit: [n] the unit of each record, 0..U-1, none empty.

    Returns:
        For each group the unit numbers [u] and their record numbers [u, m], padded with n.
    """
    n, sizes = unit.shape[0], unit.bincount()
    order = unit.argsort(stable=True)
    first = sizes.cumsum(0) - sizes
    padded = torch.cat([order, order.new_tensor([n])])
    doublings = sizes.log2().floor()
    groups = []
    for doubling in doublings.unique():
        members = (doublings == doubling).nonzero().flatten()
        slot = torch.arange(int(sizes[members].max()), device=unit.device)
        place = torch.where(slot < sizes[members, None], first[members, None] + slot, n)
        groups.append((members, padded[place]))
    return groups


def norms_and_sum(uses: list[Use], groups: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """‖G_j‖² [U] of every unit's gradient G_j = Σ_{i∈j, r} e[i, r] ⊗ a[i, r] by one weight, and Σ_j G_j.

    Long units make their gradient one after the other. Short ones go together, by whichever is cheaper: their gradients
    [out, in], or the Gram matrices of their rows, whose elementwise product sums to the same.

    Args:
        uses: all uses of the weight; more than one if it is tied.
        groups: which records make a unit, from `group_records`.
    """
    norms = uses[0].error.new_zeros(sum(members.shape[0] for members, _ in groups))
    total = norms.new_zeros(uses[0].shape)
    for members, records in groups:
        real = records < uses[0].error.shape[0]
        if records.shape[1] < LONG:
            _norms_together(uses, members, records.where(real, 0), mask=real, norms=norms)
            total += _weight_gradient(uses, records[real])
            continue
        for unit, record, mask in zip(members, records, real, strict=True):
            gradient = _weight_gradient(uses, record[mask])
            norms[unit] = gradient.square().sum()
            total += gradient
    return norms, total


def _weight_gradient(uses: list[Use], records: Tensor) -> Tensor:
    return torch.stack([use.weight_gradient(records) for use in uses]).sum(0)


def _norms_together(uses: list[Use], members: Tensor, records: Tensor, *, mask: Tensor, norms: Tensor) -> None:
    """Fill in the norms of units whose records [u, m] are padded to one length; `mask` [u, m] tells which are real."""
    held = sum(use.input[0].numel() * 9 + use.error[0].numel() for use in uses) * records.shape[1]
    step = max(1, CHUNK // (held + uses[0].shape.numel()))
    for unit, record, real in zip(*(x.split(step) for x in (members, records, mask)), strict=True):
        rows = [use.rows(record.flatten()) for use in uses]
        a, e = (torch.cat(x, 1).unflatten(0, record.shape).flatten(1, 2) for x in zip(*rows, strict=True))
        e = e * real.repeat_interleave(e.shape[1] // real.shape[1], 1).unsqueeze(-1)
        if a.shape[1] * (a.shape[2] + e.shape[2]) < a.shape[2] * e.shape[2]:
            norms[unit] = ((a @ a.mT) * (e @ e.mT)).sum((1, 2))
        else:
            norms[unit] = (e.mT @ a).square().sum((1, 2))
