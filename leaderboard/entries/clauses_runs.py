"""Can these numbers have come out of these tasks? One function per clause, as in `leaderboard.entries.clauses`."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from leaderboard.entries.clauses import BASELINE, Claim
from leaderboard.entries.schema import shown
from leaderboard.entries.submission import Json

if TYPE_CHECKING:
    from harness.tasks.catalogue import Task

SLIP = 1e-6
"""how far a sum of floating-point rewards may lie outside the range"""
KEPT_DIGITS = 1e-6
"""kept fractions are rounded to this"""
FOUND = ("corrupted", "auroc", "average_precision", "recall", "precision")
"""what is recorded of every round of a corrupted task"""
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


def _protocol_problems(cell: Json, task: "Task") -> Iterator[str]:
    from algos.training.corrupt import Corruption

    expected = {name: len(task.checkpoints) for name in ("seconds", "returns", "lengths")}
    expected |= dict.fromkeys(("kept", "optimizer_steps"), task.args.rounds)
    for name, length in expected.items():
        if len(cell[name]) != length:
            yield f"{name} has to have {length} items, got {len(cell[name])}"
    names = FOUND if Corruption.parse(task.args.corrupt).fraction else ()
    if cell["corruption"].keys() != set(names):
        yield f"corruption has to have exactly {', '.join(names) or 'nothing'}"
    for name, values in cell["corruption"].items():
        if len(values) != task.args.rounds:
            yield f"corruption.{name} has to have {task.args.rounds} items, got {len(values)}"
    for name in ("returns", "lengths"):
        odd = {len(episodes) for episodes in cell[name]} - {task.args.eval_episodes}
        if odd:
            yield f"{name} has to have {task.args.eval_episodes} episodes a checkpoint, got {min(odd)}"


def returns(claim: Claim) -> Iterator[str]:
    """Every return lies in the range that the environment can give."""
    for cell in claim.document["cells"]:
        if cell["task"] not in claim.tasks:
            continue
        low, high = claim.tasks[cell["task"]].returns
        smallest = min(min(episodes) for episodes in cell["returns"])
        largest = max(max(episodes) for episodes in cell["returns"])
        for value in (smallest, largest):
            if not low - SLIP <= value <= high + SLIP:
                yield f"{_name(cell)}: a return of {shown(value)} can't be; they lie in [{low:g}, {high:g}]"


def clocks(claim: Claim) -> Iterator[str]:
    """Training seconds are above 0, never run backwards, and end at the sum of the training phases."""
    from algos.training.clock import PHASES, TRAINING

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


def _round_problems(cell: Json, task: "Task", *, repack: bool) -> Iterator[str]:
    args = task.args
    most = args.update_epochs * max(args.batch_size // args.minibatch_size, 1)
    for number, (share, steps) in enumerate(zip(cell["kept"], cell["optimizer_steps"], strict=False)):
        records = round(share * args.batch_size)
        if abs(share * args.batch_size - records) > KEPT_DIGITS * args.batch_size:
            yield f"in round {number}, {shown(share)} is no share of {args.batch_size} records"
        size = min(args.minibatch_size, records)
        expected = args.update_epochs * (records // size) if size >= 2 else 0
        if repack and steps != expected:
            yield f"in round {number}, {records} kept records make {expected} optimizer steps, got {steps}"
        elif steps > most:
            yield f"in round {number}, there can be at most {most} optimizer steps, got {steps}"
