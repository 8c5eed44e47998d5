"""Can these numbers have come out of these tasks? One function per clause, as in `leaderboard.entries.clauses`."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Literal

import numpy as np

from leaderboard.entries.catalogue import TaskFacts
from leaderboard.entries.clauses import BASELINE, Claim
from leaderboard.entries.schema import shown
from leaderboard.entries.submission import Json, episodes_of
from leaderboard.runs.store import PHASES, TRAINING

SLIP = 1e-6
"""how far a sum of floating-point rewards may lie outside the range"""
KEPT_DIGITS = 1e-6
"""kept fractions are rounded to this"""
FOUND = ("corrupted", "auroc", "average_precision", "recall", "precision")
"""what is recorded of every round of a corrupted task"""
EPISODES: tuple[Literal["returns", "lengths"], ...] = ("returns", "lengths")
CLOCK_SLIP = 0.02
"""seconds by which clocks that were rounded to the millisecond may differ, and a thousandth on top"""


def _name(cell: Json) -> str:
    return f"{cell['filter']} on {cell['task']} with seed {cell['seed']}"


def checkpoints(claim: Claim) -> Iterator[str]:
    """Steps, episodes and rounds are those of the task's protocol."""
    for name, task in claim.tasks.items():
        steps = claim.document["tasks"][name]["steps"]
        if steps != list(task.checkpoints):
            yield (
                f"{name} has to have {len(task.checkpoints)} checkpoints up to step {task.checkpoints[-1]}, "
                f"got {len(steps)} up to {steps[-1]} (or others in between)"
            )
    for cell in claim.document["cells"]:
        if cell["task"] in claim.tasks:
            yield from (f"{_name(cell)}: {p}" for p in _protocol_problems(cell, claim.tasks[cell["task"]]))


def _protocol_problems(cell: Json, task: TaskFacts) -> Iterator[str]:
    yield from _length_problems(cell, {"seconds": len(task.checkpoints)})
    yield from _length_problems(cell, dict.fromkeys(("kept", "optimizer_steps"), task.rounds))
    names = FOUND if task.corrupted else ()
    if cell["corruption"].keys() != set(names):
        yield f"corruption has to have exactly {', '.join(names) or 'nothing'}"
    for problem in _length_problems(cell["corruption"], dict.fromkeys(cell["corruption"], task.rounds)):
        yield f"corruption.{problem}"
    summary, wanted = cell.get("summary"), task.args["eval_episodes"]
    if [cell[name] is None for name in EPISODES] != [summary is not None] * 2:
        yield "there has to be either summary, or returns and lengths"
        return
    if summary is None:
        yield from _length_problems(cell, dict.fromkeys(EPISODES, len(task.checkpoints)))
    else:
        yield from (f"summary.{problem}" for problem in _summary_problems(summary, task))
    for name in EPISODES:
        odd = {len(episodes) for episodes in episodes_of(cell, name)} - {wanted}
        if odd:
            yield f"{name} has to have {wanted} episodes a checkpoint, got {min(odd)}"


def _length_problems(lists: Json, lengths: Mapping[str, int]) -> Iterator[str]:
    for name, length in lengths.items():
        if len(lists[name]) != length:
            yield f"{name} has to have {length} items, got {len(lists[name])}"


def _summary_problems(summary: Json, task: TaskFacts) -> Iterator[str]:
    yield from _length_problems(summary, dict.fromkeys(("means", "spreads"), len(task.checkpoints)))
    if summary["episodes"] != task.args["eval_episodes"]:
        yield f"episodes has to be {task.args['eval_episodes']}, got {summary['episodes']}"
    last = np.array(summary["last_returns"])
    for name, value in (("means", float(last.mean())), ("spreads", float(last.std()))):
        if not np.isclose(summary[name][-1], value, rtol=1e-6, atol=1e-6):
            yield f"{name} ends at {shown(summary[name][-1])}, but last_returns make {shown(value)}"


def returns(claim: Claim) -> Iterator[str]:
    """Every return lies in the range that the environment can give."""
    for cell in claim.document["cells"]:
        if cell["task"] not in claim.tasks:
            continue
        low, high = claim.tasks[cell["task"]].returns
        means = (cell.get("summary") or {"means": ()})["means"]
        listed = [*episodes_of(cell, "returns"), *([means] if means else [])]
        smallest, largest = min(map(min, listed), default=0.0), max(map(max, listed), default=0.0)
        for value in (smallest, largest):
            if not low - SLIP <= value <= high + SLIP:
                yield f"{_name(cell)}: a return of {shown(value)} can't be; they lie in [{low:g}, {high:g}]"


def clocks(claim: Claim) -> Iterator[str]:
    """Training seconds are above 0, never run backwards, and end at the sum of the training phases."""
    for cell in claim.document["cells"]:
        seconds, phases = cell["seconds"], cell["phase_seconds"]
        if seconds[0] <= 0:
            yield f"{_name(cell)}: seconds have to be above 0"
        if any(later < earlier for earlier, later in pairwise(seconds)):
            yield f"{_name(cell)}: seconds run backwards"
        if set(phases) != set(PHASES):
            yield f"{_name(cell)}: phase_seconds has to have exactly {', '.join(PHASES)}"
            continue
        training = sum(phases[phase] for phase in TRAINING)
        if abs(training - seconds[-1]) > CLOCK_SLIP + training / 1000:
            yield (
                f"{_name(cell)}: the training phases took {training:.3f} s, but the last checkpoint was at "
                f"{seconds[-1]:.3f} s"
            )


def kept(claim: Claim) -> Iterator[str]:
    """Kept fractions are shares of a rollout, 1 for the baseline, and give just these optimizer steps."""
    filters = claim.document["filters"]
    for cell in claim.document["cells"]:
        if cell["filter"] == BASELINE and any(share != 1 for share in cell["kept"]):
            yield f"{_name(cell)}: the baseline keeps everything, so kept has to be 1"
        if cell["task"] in claim.tasks and cell["task"] in filters.get(cell["filter"], {}).get("tasks", {}):
            apply = filters[cell["filter"]]["tasks"][cell["task"]]["apply"]
            for problem in _round_problems(cell, claim.tasks[cell["task"]], repack=apply == "repack"):
                yield f"{_name(cell)}: {problem}"
                break


def _round_problems(cell: Json, task: TaskFacts, *, repack: bool) -> Iterator[str]:
    batch, minibatch, epochs = task.batch_size, task.args["minibatch_size"], task.args["update_epochs"]
    most = epochs * max(batch // minibatch, 1)
    for number, (share, steps) in enumerate(zip(cell["kept"], cell["optimizer_steps"], strict=False)):
        records = round(share * batch)
        if abs(share * batch - records) > KEPT_DIGITS * batch:
            yield f"in round {number}, {shown(share)} is no share of {batch} records"
        size = min(minibatch, records)
        expected = epochs * (records // size) if size >= 2 else 0
        if repack and steps != expected:
            yield f"in round {number}, {records} kept records make {expected} optimizer steps, got {steps}"
        elif steps > most:
            yield f"in round {number}, there can be at most {most} optimizer steps, got {steps}"
