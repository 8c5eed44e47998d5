"""How does each record's gradient agree with a direction? Exact, without one gradient per record."""

from collections.abc import Callable

import torch
from torch import Tensor

from filters.api import Params


def gradient(loss: Callable[[Params], Tensor], params: Params) -> Params:
    """∇loss at `params`, in the same names and shapes; zeros where the loss does not depend on a parameter.

    Args:
        loss: params -> [] scalar.
        params: where to differentiate.
    """
    gradients: Params = torch.func.grad(loss)(params)
    return gradients


def dots(losses: Callable[[Params], Tensor], params: Params, direction: Params) -> Tensor:
    """⟨∇ℓ_i, direction⟩ of every loss ℓ_i at once: the Jacobian-vector product of the losses.

    One forward pass that carries tangents; exact for any architecture, and no n × P numbers are held.

    Args:
        losses: params -> [m] one loss a unit.
        params: where to differentiate.
        direction: the vector, in the names and shapes of `params`.

    Returns:
        [m], in the dtype of the losses; -inf for a loss whose product is not finite, which a ScoreFilter never keeps.
    """
    tangents: Tensor = torch.func.jvp(losses, (params,), (direction,))[1]
    return torch.where(tangents.isfinite(), tangents, -torch.inf)
