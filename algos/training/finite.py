"""Is what training has come to still finite? Where it is not, the run ends in that round and says what it was."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from filters.errors import TrainingError


def check_advantages(advantages: NDArray[Any], number: int) -> None:
    """Raise TrainingError if an advantage is not finite, because rewards or values are not."""
    if not np.isfinite(advantages).all():
        raise TrainingError(f"rewards or values are not finite in round {number}; try a smaller learning rate")


def mean_losses(sums: torch.Tensor, steps: int, names: tuple[str, ...], number: int) -> dict[str, float]:
    """Turn the losses summed on the device into means over `steps` minibatches; the round's one host transfer.

    Raises:
        TrainingError: if one is not finite.
    """
    if steps == 0:
        return {}
    losses = dict(zip(names, (sums / steps).tolist(), strict=True))
    bad = [name for name, value in losses.items() if not np.isfinite(value)]
    if bad:
        raise TrainingError(f"{bad[0]} is {losses[bad[0]]} in round {number}; try a smaller learning rate")
    return losses


def check_parameters(agent: torch.nn.Module, number: int) -> None:
    """Raise TrainingError if a parameter is not finite, as after a gradient that was not: losses show that too late."""
    named = dict(agent.named_parameters())
    finite = torch.stack([p.detach().isfinite().all() for p in named.values()]).tolist()
    bad = [name for name, fine in zip(named, finite, strict=True) if not fine]
    if bad:
        raise TrainingError(
            f"parameter {bad[0]} is not finite after the update of round {number}, because a gradient was not or the "
            "step was too large; try a smaller learning rate"
        )
