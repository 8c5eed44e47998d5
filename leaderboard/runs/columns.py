"""Which arrays do the lines of a run's two logs hold? Whatever is wrong is a UsageError that names the file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leaderboard.runs.jsonfile import Json, damaged, field, number, numbers, wholes


@dataclass(frozen=True, eq=False)
class Checkpoints:
    """What `evals.jsonl` says: K checkpoints, of which each has its own number of episodes E."""

    steps: NDArray[np.int64]
    """[K] strictly increasing, above 0"""
    seconds: NDArray[np.float64]
    """[K] not decreasing, above 0"""
    means: NDArray[np.float64]
    """[K] mean return of the episodes"""
    returns: tuple[NDArray[np.float64], ...]
    """K times [E]; empty if the episodes are not kept"""
    lengths: tuple[NDArray[np.int64], ...]
    """likewise"""


@dataclass(frozen=True, eq=False)
class Rounds:
    """What `rounds.jsonl` says: R rounds."""

    kept: NDArray[np.float64]
    """[R]"""
    optimizer_steps: NDArray[np.int64]
    """[R]"""
    skipped: int
    phase_seconds: dict[str, float]
    """sums over the rounds"""
    corruption: Mapping[str, NDArray[np.float64]]
    """[R] each; empty where no record was made harmful"""


def read_checkpoints(lines: Iterable[Json], file: Path, *, episodes: bool) -> Checkpoints:
    """The lines of `evals.jsonl` as arrays; raises UsageError.

    Args:
        lines: at least one.
        file: for messages.
        episodes: keep every episode's return and length, rather than means alone.
    """
    steps: list[int] = []
    seconds: list[float] = []
    means, returns, lengths = [], [], []
    for line in lines:
        earned, took = _episodes(line, file)
        steps.append(field(line, "step", int, file))
        seconds.append(number(line, "seconds", file))
        means.append(earned.mean())
        if episodes:
            returns.append(earned)
            lengths.append(took)
    return Checkpoints(_axis(steps, file), _clock(seconds, file), np.array(means), tuple(returns), tuple(lengths))


def read_rounds(log: Sequence[Json], file: Path) -> Rounds:
    """The lines of `rounds.jsonl` as arrays; raises UsageError."""
    return Rounds(
        kept=numbers([field(line, "kept", object, file) for line in log], "kept", file),
        optimizer_steps=wholes([field(line, "optimizer_steps", object, file) for line in log], "optimizer_steps", file),
        skipped=sum(field(line, "skipped", bool, file) for line in log),
        phase_seconds=_totals([field(line, "seconds", dict, file) for line in log], file),
        corruption=_corruption(log, file),
    )


def _episodes(line: Json, file: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns and lengths [E] of a checkpoint."""
    returns = numbers(field(line, "returns", list, file), "returns", file)
    if not returns.size:
        raise damaged(file, "has a checkpoint without an episode")
    lengths = field(line, "lengths", list, file)
    if len(lengths) != len(returns):
        raise damaged(file, "has a checkpoint with more returns than lengths, or fewer")
    return returns, wholes(lengths, "lengths", file)


def _axis(steps: list[int], file: Path) -> NDArray[np.int64]:
    axis = np.array(steps, dtype=np.int64)
    if axis[0] <= 0 or np.any(axis[1:] <= axis[:-1]):
        raise damaged(file, "has steps that do not increase from line to line")
    return axis


def _clock(seconds: list[float], file: Path) -> NDArray[np.float64]:
    axis = np.array(seconds)
    if axis[0] <= 0 or np.any(axis[1:] < axis[:-1]):
        raise damaged(file, "has seconds that are not positive or run backwards")
    return axis


def _corruption(log: Sequence[Json], file: Path) -> dict[str, NDArray[np.float64]]:
    found = [field(line, "corruption", dict, file) for line in log if "corruption" in line]
    if not found:
        return {}
    if len(found) < len(log) or any(one.keys() != found[0].keys() for one in found):
        raise damaged(file, "says of some rounds only how records were corrupted")
    return {
        name: np.array([np.nan if one[name] is None else number(one, name, file) for one in found]) for name in found[0]
    }


def _totals(rounds: list[Json], file: Path) -> dict[str, float]:
    phases = sorted({phase for seconds in rounds for phase in seconds})
    columns = {phase: [seconds.get(phase, 0.0) for seconds in rounds] for phase in phases}
    for phase, column in columns.items():
        numbers(column, phase, file)
    return {phase: float(sum(column)) for phase, column in columns.items()}
