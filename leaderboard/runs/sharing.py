"""How are thousands of runs held in memory when most of what they say is the same?"""

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.runs.jsonfile import Json


class Shared:
    """Hands out the first of equal values, so that it is there once. Whoever gets one must not change it."""

    def __init__(self) -> None:
        self._first: dict[Any, Any] = {}

    def fields(self, record: Json) -> Json:
        """An object of JSON: a new one of equal names and values, each of them shared."""
        return {sys.intern(name): self.value(value) for name, value in record.items()}

    def value(self, value: Any) -> Any:
        """A value of JSON: an equal one."""
        if isinstance(value, str):
            return sys.intern(value)
        if not isinstance(value, dict | list):
            return value
        try:
            return self._first.setdefault(json.dumps(value), value)
        except RecursionError:
            return value

    def axis(self, axis: NDArray[np.int64]) -> NDArray[np.int64]:
        """An array: an equal one."""
        found: NDArray[np.int64] = self._first.setdefault(axis.tobytes(), axis)
        return found
