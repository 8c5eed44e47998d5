"""What does the evaluation protocol alone do to the numbers of one and the same training?"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from leaderboard.claims import measures
from leaderboard.claims.answers import Entries, of_task
from leaderboard.claims.claim import command_of
from leaderboard.claims.verdict import ABOVE, judge
from leaderboard.claims.words import Section, Table, estimate
from leaderboard.entries.submission import Entry
from leaderboard.runs.store import CellRun
from leaderboard.statistics.pairing import cells_of

TASK = "MiniGrid-Empty-8x8"
FULL = "claims-protocol"
USUAL = ("claims-settings", "claims-iif")
"""each holds the usual protocol; the first one that is there"""
STRIDES = (1, 2, 4)
"""rounds between evaluations that are looked at"""
TITLE = "What the evaluation protocol does"
COLUMNS = ("Episodes an evaluation", "Rounds between evaluations", "Seeds", "SE_ave", "SE_peak", "Δ AUC")
ABOUT = (
    f"{TASK} in the IIF setting, `iif` against no filter, seen through other evaluations: with as many episodes as the "
    "paper and with fewer, and with only some of the evaluations. The peak of noisy evaluations is a lucky one, and "
    "sparse ones say late that a level was reached."
)


def section(entries: Entries) -> Section:
    """The table, of the seeds that both protocols have; a sentence where an entry is missing."""
    usual = next((entries[name] for name in USUAL if name in entries), None)
    found = [entry for entry in (entries.get(FULL), usual) if entry]
    missing = [command_of(suite) for suite, entry in ((FULL, entries.get(FULL)), (USUAL[0], usual)) if not entry]
    notes = tuple(
        f"The rest of this table needs runs that are not published yet: `{each}` makes them." for each in missing
    )
    if not found:
        return Section(TITLE, (ABOUT, f"The runs are not published yet: {_both(missing)} make them."))
    seeds = set.intersection(*({cell.seed for cell in of_task(entry, TASK)} for entry in found))
    sides = [_sides(entry, seeds) for entry in found]
    if any(not ours or not theirs for ours, theirs in sides):
        return Section(TITLE, (ABOUT, "The entries have no seed in common, so nothing is compared."))
    rows = tuple(_row(ours, theirs, every=every) for ours, theirs in sides for every in STRIDES)
    return Section(TITLE, (ABOUT, *_alike(sides)), (Table(COLUMNS, rows),), notes)


def thin(cell: CellRun, every: int) -> CellRun:
    """The run as if it had been evaluated only every so many evaluations, and at the end."""
    count = len(cell.steps)
    chosen = np.array([n - 1 for n in range(1, count + 1) if n % every == 0 or n == count])
    return dataclasses.replace(
        cell,
        steps=cell.steps[chosen],
        seconds=cell.seconds[chosen],
        means=cell.curve[chosen],
        returns=cell.returns[-1:],
        lengths=cell.lengths[-1:],
    )


def _sides(entry: Entry, seeds: set[int]) -> tuple[list[CellRun], list[CellRun]]:
    cells = [cell for cell in of_task(entry, TASK) if cell.seed in seeds]
    return cells_of(cells, "iif"), cells_of(cells, "none")


def _row(ours: Sequence[CellRun], theirs: Sequence[CellRun], *, every: int) -> tuple[str, ...]:
    ours, theirs = ([thin(cell, every) for cell in side] for side in (ours, theirs))
    written = []
    for measure in (measures.SE_AVE, measures.SE_PEAK, measures.AREA):
        finding = judge(measure.of(ours, theirs), ABOVE)
        bounds = f" ({finding.bounds} of {finding.seeds} never there)" if finding.bounds else ""
        written.append(estimate(finding.interval, measure, bounds=finding.bounds) + bounds)
    args = theirs[0].config["args"]
    return (f"{args['eval_episodes']:,}", str(every * args["eval_every"]), str(len(theirs)), *written)


def _alike(sides: Sequence[tuple[list[CellRun], list[CellRun]]]) -> tuple[str, ...]:
    """Whether the training behind both protocols was the same one."""
    if len(sides) < 2:
        return ()
    (ours, theirs), (others, their_others) = sides
    pairs = zip([*ours, *theirs], [*others, *their_others], strict=True)
    if all(np.array_equal(one.kept, other.kept) for one, other in pairs):
        return ("In every round both protocols' runs kept the same share of the records: the training is the same.",)
    return ("The runs of both protocols did not keep the same records, so their training differs as well.",)


def _both(commands: Sequence[str]) -> str:
    return " and ".join(f"`{each}`" for each in commands)
