"""Against which records may IIF measure influence other than the rollout's own? A fixed reference from a file."""

from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from filters.api import Objective, Params, Rollout
from filters.errors import FilterError, UsageError

FORMAT = "filtergym-reference-1"


@dataclass(frozen=True)
class Reference:
    """A trained policy and a rollout of its own."""

    task: str
    """id of the task it was trained on"""
    params: Params
    """the agent's parameters by name"""
    obs: Tensor
    """[m, *obs]"""
    actions: Tensor
    """[m, *act]"""
    advantages: Tensor
    """[m] Â_ref(s, a), not normalised"""

    def save(self, path: Path) -> None:
        """Write the reference; raises UsageError if the file can't be written."""
        try:
            torch.save({"format": FORMAT, **vars(self)}, path)
        except (OSError, RuntimeError) as error:
            raise UsageError(f"can't write the reference {path} ({error}); choose another file") from error

    def check_fits(self, rollout: Rollout, objective: Objective) -> None:
        """Raise a FilterError unless the reference is of the architecture and the spaces that are being trained."""
        mine = {name: tuple(p.shape) for name, p in objective.params.items()}
        theirs = {name: tuple(p.shape) for name, p in self.params.items()}
        different = [name for name, shape in mine.items() if theirs.get(name) != shape]
        if (
            different
            or self.obs.shape[1:] != rollout.obs.shape[1:]
            or self.actions.shape[1:] != rollout.actions.shape[1:]
        ):
            what = f"its {different[0]!r} differs" if different else "its observations or actions have another shape"
            raise FilterError(
                f"the reference was trained on {self.task} with another architecture ({what}); "
                "make one with python -m harness.reference on this task"
            )


def load(path: str) -> Reference:
    """Read a reference file, once while it stays the same.

    Raises:
        ValueError: no such file, or no reference in it.
    """
    try:
        changed = Path(path).stat().st_mtime_ns
    except OSError as error:
        hint = "make one with python -m harness.reference"
        raise ValueError(f"can't read the reference {path!r} ({error.strerror}); {hint}") from error
    return _load(path, changed)


@lru_cache(maxsize=4)
def _load(path: str, changed: int) -> Reference:
    try:
        content: Any = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds for a file that is not its own
        raise ValueError(f"{path!r} is no reference made by python -m harness.reference") from error
    wanted = {field.name for field in fields(Reference)}
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT or set(content) != wanted:
        raise ValueError(f"{path!r} is no reference made by python -m harness.reference")
    return Reference(**content)
