"""May these runs be compared: the same seeds on both sides, and alike in everything but the filter?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from filters.errors import UsageError
from leaderboard.runs.store import CellFailure, CellRun

Cell = CellRun | CellFailure

OWN_KEYS = ("seed", "filter", "apply")
"""names that `args` may repeat from above it in config.json; they differ between cells by design"""


def refuse_twins(cells: Sequence[CellRun]) -> None:
    """Raises UsageError if two cells have the same task, filter and seed: no pairing could choose between them."""
    seen: dict[tuple[str, str, int], CellRun] = {}
    for cell in cells:
        twin = seen.setdefault((cell.task, cell.spec, cell.seed), cell)
        if twin is not cell:
            raise UsageError(
                f"{twin.path} and {cell.path} are both {cell.spec} on {cell.task} with seed {cell.seed}; "
                "report on a folder that holds only one of them"
            )


def cells_of(cells: Sequence[CellRun], spec: str | None) -> list[CellRun]:
    """The cells of one filter, by seed."""
    return sorted((cell for cell in cells if cell.spec == spec), key=lambda cell: cell.seed)


def missing_seeds(cells: list[CellRun], failures: list[CellFailure], spec: str, baseline: str | None) -> str | None:
    """Which of the two lacks which seeds; a seed that failed on both sides is missing on both."""
    both: list[Cell] = [*cells, *failures]
    expected = {cell.seed for cell in both if cell.spec in (spec, baseline)}
    sentences = []
    for side in (spec, baseline):
        missing = sorted(expected - {cell.seed for cell in cells if cell.spec == side})
        if missing:
            plural, verb = ("s", "are") if len(missing) > 1 else ("", "is")
            sentences.append(f"seed{plural} {', '.join(map(str, missing))} {verb} missing for {side}")
    return " and ".join(sentences) or None


OF_A_FILTER = ("filter_class", "filter_fields", "filter_files", "filter_sources", "apply")
"""what all seeds of one filter have in common; not every filter has files or sources of its own"""


def mismatch(cells: list[CellRun], spec: str, baseline: str | None) -> str | None:
    """What differs between cells that must be alike in everything but filter and seed."""
    ours, theirs = cells_of(cells, spec), cells_of(cells, baseline)
    for group in (ours, theirs):
        for cell in group:
            difference = _differing(group[0], cell, OF_A_FILTER)
            if difference:
                return f"{cell.spec} has {difference} between seeds {group[0].seed} and {cell.seed}"
    for cell in [*theirs, *ours]:
        difference = _differing(theirs[0], cell, ("agent", "device", "args", "references"))
        if (
            difference is None
            and theirs[0].compiled != cell.compiled
            and None not in (theirs[0].compiled, cell.compiled)
        ):
            difference = f"different ways to train ({_way(theirs[0])} against {_way(cell)})"
        if difference is None and not np.array_equal(theirs[0].steps, cell.steps):
            difference = f"different checkpoints ({_axis(theirs[0])} against {_axis(cell)})"
        if difference:
            return (
                f"the runs have {difference}: {baseline} with seed {theirs[0].seed} "
                f"against {cell.spec} with seed {cell.seed}"
            )
    return None


def _way(cell: CellRun) -> str:
    return "compiled" if cell.compiled else "not compiled"


def _differing(a: CellRun, b: CellRun, keys: tuple[str, ...]) -> str | None:
    """The first setting that differs, with both values."""
    for key in keys:
        left, right = _flat(key, a.config.get(key, {})), _flat(key, b.config.get(key, {}))
        for name in sorted(left.keys() | right.keys()):
            if left.get(name) != right.get(name):
                return f"different {name} ({left.get(name)} against {right.get(name)})"
    return None


def _flat(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {key: value}
    own = OWN_KEYS if key == "args" else ()
    return {f"{key}.{name}": entry for name, entry in value.items() if name not in own}


def _axis(cell: CellRun) -> str:
    return f"{len(cell.steps)} up to step {cell.steps[-1]:,}"
