"""Do the runs of a submission come out again? Draws some, runs them anew and compares.

python -m leaderboard.rerun leaderboard/submissions/KEY.json --cells 1

A run is *identical* if every episode return and length, kept fraction and optimizer step is the same. Under the same
code, versions and hardware a run has to be that. Under others it is *consistent* if its final return and its area under
the curve lie within the entry's own seeds of that task and filter, widened on both sides by WIDENED standard deviations
of those seeds and by FLOOR of the task's range (random to solved). Otherwise it is *different*.

Nothing in a submission is run: a filter from outside is run again only where it is installed and its source is, letter
for letter, the one that the submission states.
"""

import datetime
import importlib.metadata
import os
import random
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro

from filters.errors import UsageError, run_command
from leaderboard.entries.located import defines_filter, source_without_import
from leaderboard.entries.submission import Entry, Json, entry_of, parse_bytes, write_document
from leaderboard.runs.store import CellRun, cell_dir, read_cell, read_failure, status
from leaderboard.statistics import metrics
from leaderboard.validate import examine, read

WIDENED = 3.0
"""standard deviations of the entry's seeds by which their range is widened: of five normal seeds and a sixth, the sixth
leaves it in 2 % of cases; an outcome that one seed in ten has leaves it in 6 %"""
FLOOR = 0.05
"""of the task's range, by which it is widened on top: seeds may all have the same return"""

Verdict = Literal["identical", "consistent", "different"]


@dataclass(frozen=True)
class Args:
    """Run some of a submission's runs again; exit code 1 if one comes out different."""

    file: tyro.conf.Positional[Path]
    """the submission"""
    cells: int = 1
    """how many runs, drawn at random"""
    seed: int | None = None
    """seed of the draw, to repeat one; random by default"""
    out: Path | None = None
    """a folder that is empty or does not exist, to keep the run directories; by default they are not kept"""
    accept: bool = False
    """write `re-run` and the record into the file unless a run comes out different"""


def main(argv: list[str] | None = None) -> int:
    """Draw, run, compare; returns the exit code."""
    args = tyro.cli(Args, args=argv, prog="python -m leaderboard.rerun", description=__doc__)
    document = sound_document(args.file)
    entry = entry_of(document, args.file.stem)
    check_fresh(args.out)
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    drawn = draw(entry, args.cells, seed=seed)
    print(f"{len(drawn)} of {len(entry.cells)} runs, drawn with --seed {seed}: {', '.join(map(name_of, drawn))}")
    with tempfile.TemporaryDirectory() as scratch:
        again = run_again(entry, drawn, args.out or Path(scratch))
    verdicts = [verdict(ours, theirs, entry) for ours, theirs in zip(again, drawn, strict=True)]
    for ours, theirs, found in zip(again, drawn, verdicts, strict=True):
        print(f"{found:10}  {name_of(theirs)}  {numbers(ours, theirs)}")
    print(circumstances(again, entry))
    if "different" in verdicts:
        return 1
    if args.accept:
        write_document(args.file, document | {"status": "re-run", "rerun": record(entry, again, verdicts)})
        print(f"wrote the record into {args.file}: re-run")
    return 0


def sound_document(path: Path) -> Json:
    """The submission in a file; raises UsageError unless it passes every clause but `duplicate`."""
    raw = read(path)
    findings = examine(raw, path, accepted=[])
    failed = [clause for clause, messages in findings.items() if messages]
    if failed:
        raise UsageError(f"{path} is not sound ({', '.join(failed)}); `python -m leaderboard.validate {path}` says why")
    document: Json = parse_bytes(raw)
    return document


def check_fresh(out: Path | None) -> None:
    """Raise UsageError if `out` holds anything: a run replaces what is in its folder."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose another --out")


def draw(entry: Entry, number: int, *, seed: int) -> list[CellRun]:
    """That many runs of an entry, drawn at random; the same seed draws the same ones."""
    if not 1 <= number <= len(entry.cells):
        raise UsageError(f"--cells must lie in 1..{len(entry.cells)}, got {number}")
    runs = sorted(entry.cells, key=lambda cell: (cell.task, cell.spec, cell.seed))
    return random.Random(seed).sample(runs, number)


def name_of(cell: CellRun) -> str:
    """How messages call a run."""
    return f"{cell.spec} on {cell.task} with seed {cell.seed}"


def run_again(entry: Entry, drawn: Sequence[CellRun], out: Path) -> list[CellRun]:
    """Run these runs anew, each by a command of its own, and read what comes out.

    Raises:
        UsageError: if one can't be run here, or fails.
    """
    for cell in drawn:
        check_source(entry, cell)
    return [run_one(cell, out) for cell in drawn]


def run_one(theirs: CellRun, out: Path) -> CellRun:
    """The same run, made here; raises UsageError if it can't be."""
    path = cell_dir(out, theirs.task, theirs.spec, theirs.seed)
    # It shows its progress itself, and finds filters where this process would.
    subprocess.run(
        [sys.executable, "-m", "harness.run", *words(theirs), "--out", str(out)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    if status(path) == "incomplete":
        raise UsageError(f"{name_of(theirs)} can't be run again here; harness.run says above what is missing")
    if status(path) == "failed":
        raise UsageError(f"{name_of(theirs)} can't be compared, because here it failed: {read_failure(path).error}")
    check_same(read_cell(path), theirs)
    return read_cell(path)


def words(cell: CellRun) -> list[str]:
    """What to say to `harness.run` to make a run."""
    config = cell.config
    what = ["--task", cell.task, "--filter", cell.spec, "--no-baseline", "--seeds", f"{cell.seed},"]
    return [*what, "--device", config["device"], "--compile", config["args"]["compile"], "--jobs", "1", "--no-report"]


def check_source(entry: Entry, cell: CellRun) -> None:
    """Raise UsageError unless the filter is FilterGym's, or installed here with the very source of the entry.

    Nothing is imported before that is known.
    """
    from filters.registry import GROUP, built_in, parse, text_hash

    stated = entry.filters[cell.spec]
    name = parse(cell.spec).name
    if name in built_in():
        return
    module, _, class_name = stated.class_path.partition(":")
    text = source_without_import(module)
    what = f"{cell.spec} is a filter from outside ({stated.class_path})"
    if text is None:
        raise UsageError(f"{what} that is not installed here, and its included source is never run; install it")
    if text_hash(text) != stated.sha256:
        raise UsageError(f"{what} whose source here is not the one that the submission was made with; install that one")
    if not defines_filter(text, class_name):
        raise UsageError(f"{what}, but its module does not define that class and import from filters; it is not run")
    points = {point.value for point in importlib.metadata.entry_points(group=GROUP, name=name)}
    if ":" not in name and points != {stated.class_path}:
        raise UsageError(f"{what}, but here no installed package gives it that name; install the one that does")


def check_same(ours: CellRun, theirs: CellRun) -> None:
    """Raise UsageError unless the run here had the settings of the entry's run, its files included."""
    # a filter's own source is compared before it is imported; what it imports itself is not part of a submission
    keys = ours.config.keys() - {"filter_sources"}
    different = sorted(key for key in keys if ours.config[key] != theirs.config.get(key))
    if different:
        raise UsageError(
            f"{name_of(theirs)} can't be run again, because here its {' and '.join(different)} would differ from what "
            "is stated; use the version of FilterGym and the files that it was made with"
        )


def verdict(ours: CellRun, theirs: CellRun, entry: Entry) -> Verdict:
    """Whether a run came out again, as the head of this file defines it."""
    if _same(ours, theirs):
        return "identical"
    if not differences([ours], entry):
        return "different"
    seeds = [cell for cell in entry.cells if (cell.task, cell.spec) == (theirs.task, theirs.spec)]
    floor = FLOOR * abs(theirs.references["solved"] - theirs.references["random"])
    final = _within(ours.curve[-1], [cell.curve[-1] for cell in seeds], floor=floor)
    area = _within(_area(ours), [_area(cell) for cell in seeds], floor=floor)
    return "consistent" if final and area else "different"


def _same(ours: CellRun, theirs: CellRun) -> bool:
    count = len(theirs.returns)  # 1 where the entry sums up all checkpoints but the last
    returns = zip(ours.returns[-count:], theirs.returns, strict=True)
    lengths = zip(ours.lengths[-count:], theirs.lengths, strict=True)
    rounds = np.array_equal(ours.optimizer_steps, theirs.optimizer_steps)
    return (
        rounds
        and np.allclose(ours.curve, theirs.curve, rtol=1e-8, atol=1e-8)
        and np.allclose(ours.kept, theirs.kept, rtol=0, atol=1e-6)
        and all(np.array_equal(one, other) for one, other in returns)
        and all(np.array_equal(one, other) for one, other in lengths)
    )


def _within(value: float, seeds: Sequence[float], *, floor: float) -> bool:
    slack = WIDENED * float(np.std(seeds, ddof=1)) + floor
    return min(seeds) - slack <= value <= max(seeds) + slack


def _area(cell: CellRun) -> float:
    """Mean height of the curve, in the task's own unit."""
    return float(metrics.auc(cell.curve[None], cell.steps.astype(np.float64))[0])


def numbers(ours: CellRun, theirs: CellRun) -> str:
    """Final return and mean height of both runs."""
    return (
        f"final {ours.curve[-1]:.4g} (stated {theirs.curve[-1]:.4g}), "
        f"mean over training {_area(ours):.4g} (stated {_area(theirs):.4g})"
    )


def differences(again: Sequence[CellRun], entry: Entry) -> list[str]:
    """What differs between here and there and may change a result; the number of jobs may not."""
    keys = ("code", "python", "packages", "platform", "device", "threads")
    different = [key for key in keys if again[0].provenance.get(key) != entry.provenance.get(key)]
    dirty = [code.get("dirty") for code in (again[0].provenance["code"], entry.provenance["code"])]
    different += ["code"] if "code" not in different and dirty != [False, False] else []
    sources = {cell.spec for cell in again if cell.filter_source != entry.filters[cell.spec].sha256}
    return different + [f"the source of {spec}" for spec in sorted(sources)]


def circumstances(again: Sequence[CellRun], entry: Entry) -> str:
    """What the verdicts rest on."""
    different = differences(again, entry)
    if different:
        return f"other circumstances here, as far as is known: {', '.join(different)}"
    return "same code, versions and hardware here: every run has to be identical"


def record(entry: Entry, again: Sequence[CellRun], verdicts: Sequence[Verdict]) -> Json:
    """What is written into the file: when, under which versions, which runs, and what came out."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "digest": entry.digest,
        "verdict": "consistent" if "consistent" in verdicts else "identical",
        "cells": [
            {"task": cell.task, "filter": cell.spec, "seed": cell.seed, "verdict": found}
            for cell, found in zip(again, verdicts, strict=True)
        ],
        "provenance": again[0].provenance,
    }


if __name__ == "__main__":
    sys.exit(run_command(main))
