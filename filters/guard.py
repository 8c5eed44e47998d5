"""Did a filter change what it was only to look at? A cheap look before and after `select`, in every round."""

import random
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

LARGE = 2**20
"""elements above which a tensor's order is not looked at, only its content and its version counter"""
AS_INTEGER = {torch.float64: torch.int64, torch.float32: torch.int32, torch.float16: torch.int16}
AS_INTEGER[torch.bfloat16] = torch.int16


class Guard:
    """What tensors, a model and the global random states were like when it was made.

    Tensors are known by their version counters, which in-place operations move, and by sums of their bits, which find
    what `.data`, NumPy views or C++ change without moving them.

    Args:
        tensors: by name, what must stay as it is.
        model: its parameters and buffers must stay as well; None where there is none at hand.
    """

    def __init__(self, tensors: Mapping[str, Tensor], model: nn.Module | None = None) -> None:
        self.tensors = dict(tensors)
        if model is not None:
            # `params` of an objective share memory with some of these; the critic's are only here.
            self.tensors |= {
                f"the policy's {name}": p for name, p in [*model.named_parameters(), *model.named_buffers()]
            }
        self.before = self._look()
        self.random = random_states()

    def changed(self) -> list[str]:
        """Names of what is no longer as it was."""
        versions, sums = self._look()
        moved = [name for name in self.tensors if versions[name] != self.before[0][name]]
        moved += [name for name, now, then in zip(self.tensors, sums, self.before[1], strict=True) if now != then]
        now = random_states()
        moved += [f"the global random state of {name}" for name in now if now[name] != self.random[name]]
        return list(dict.fromkeys(moved))

    def _look(self) -> tuple[dict[str, int], list[int]]:
        versions = {name: -1 if t.is_inference() else t._version for name, t in self.tensors.items()}
        if not self.tensors:
            return versions, []
        return versions, torch.stack([bit_sum(t) for t in self.tensors.values()]).tolist()


def bit_sum(tensor: Tensor) -> Tensor:
    """A whole number [] that almost every change of the tensor changes; it wraps around."""
    flat = tensor.detach().contiguous().flatten()
    if flat.dtype in AS_INTEGER:
        flat = flat.view(AS_INTEGER[flat.dtype])
    if flat.numel() > LARGE:
        return flat.sum(dtype=torch.int64)
    weights = torch.arange(1, flat.numel() + 1, device=flat.device)
    return (flat.to(torch.int64) * weights).sum()


def random_states() -> dict[str, bytes]:
    """The states of the generators that nobody owns."""
    _, keys, position, *_ = np.random.get_state(legacy=True)  # noqa: NPY002  looked at, not used
    return {
        "torch": torch.random.get_rng_state().numpy().tobytes(),
        "NumPy": np.asarray(keys).tobytes() + str(position).encode(),
        "Python": repr(random.getstate()).encode(),
    }
