"""What came of a sweep, for programs: `--json` of `harness.run`."""

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.cells.cell import Cell
from leaderboard.runs.folder import load
from leaderboard.statistics.comparison import compare


def print_summary(cells: Sequence[Cell], *, baseline: str | None) -> None:
    """Print the summary of a sweep's cells as one line of JSON."""
    print(json.dumps(summary(cells, baseline=baseline), allow_nan=False))


def summary(cells: Sequence[Cell], *, baseline: str | None) -> dict[str, Any]:
    """Counts, failures, and all the numbers of the comparison; what was not computed is null.

    Returns:
        `cells`: how many there are, complete and failed (never finished ones included); `failures`: task, spec, seed,
        error and round of each; `comparison`: the fields of `leaderboard.statistics.comparison.Comparison`, arrays as
        lists.

    Raises:
        UsageError: if a file is damaged.
    """
    complete, failures = load([cell.path for cell in cells], episodes=False)
    return {
        "cells": {"all": len(cells), "complete": len(complete), "failed": len(failures)},
        "failures": [plain(failure) for failure in failures],
        "comparison": plain(compare(complete, failures, baseline=baseline)),
    }


def plain(value: Any) -> Any:
    """A dataclass and all that is in it as what JSON knows; NaN and infinities become None."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
