"""How do runs become a submission? Checks that they are complete and alike, and writes them into one file.

python -m leaderboard.submit runs --name "IIF of our group" --authors "A. Author" "B. Author" --url https://example.org
"""

import datetime
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from numpy.typing import NDArray

from filters.errors import UsageError, run_command
from leaderboard.entries import catalogue
from leaderboard.entries.clauses import BASELINE, command_of
from leaderboard.entries.submission import KEY, SCHEMA, Json, digest_of, to_text, write_document
from leaderboard.runs.store import CellRun, find_cells, read_cell, status
from leaderboard.validate import examine

NAMED = 5
"""runs that a message names before it only counts"""
SHARED = ("agent", "args", "references")
"""settings that all runs of a task share"""
OF_A_RUN = ("seed", "device")
"""arguments of the agent that are kept elsewhere"""


Detail = Literal["auto", "episodes", "summary"]
MANY = 100_000
"""evaluation episodes, some 2 MiB, above which an entry sums them up"""


@dataclass(frozen=True)
class Args:
    """Write the runs of a suite into one file that others can validate, run again and compare.

    Takes the complete runs of the suite's tasks with the suite's seeds (mostly 0 to 4), and refuses if one is missing.
    """

    runs: tyro.conf.Positional[Path]
    """the folder that the runs were written to"""
    name: str
    """what people read in the table"""
    authors: tuple[str, ...]
    """who made the runs"""
    url: str | None = None
    """a paper or a repository (http or https)"""
    suite: str = "quick"
    """the suite that was run"""
    filter: tuple[str, ...] = ()
    """filter specs to submit next to the baseline; all that are there by default"""
    detail: Detail = "auto"
    """every evaluation episode, or the mean and spread of each checkpoint and the episodes of the last one; auto lists
    all while the runs have no more than 100,000 episodes together"""
    out: Path | None = None
    """the file to write; its name without .json identifies the entry; NAME.json by default"""


def main(argv: list[str] | None = None) -> None:
    """Collect, check, write."""
    args = tyro.cli(Args, args=argv, prog="python -m leaderboard.submit", description=__doc__)
    out = args.out or Path(f"{slug(args.name)}-{args.suite}.json")
    check_name(out)
    cells = collect(args.runs, suite=args.suite, filters=args.filter)
    document = build(cells, suite=args.suite, name=args.name, authors=args.authors, url=args.url, detail=args.detail)
    check(document, out)
    write_document(out, document)
    size = out.stat().st_size / 1024
    print(f"wrote {out}: {len(cells)} runs, {size:,.0f} KiB, digest {document['digest'][:12]}")
    print(f"next: python -m leaderboard.validate {shlex.quote(str(out))}")


def slug(name: str) -> str:
    """A name as a key: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "submission"


def check_name(out: Path) -> None:
    """Raise UsageError unless `out` can be written and its stem can be a key."""
    if out.suffix != ".json" or not re.fullmatch(KEY.pattern, out.stem) or len(out.stem) > KEY.longest:
        raise UsageError(f"--out {out}: the file's name has to be {KEY.describe()}, then .json")
    if out.exists():
        raise UsageError(f"{out} exists already; choose another --out or delete it")
    if not out.parent.is_dir():
        raise UsageError(f"the folder of {out} does not exist; make it or choose another --out")


def collect(runs: Path, *, suite: str, filters: Sequence[str] = ()) -> list[CellRun]:
    """The runs below a folder that belong into a submission, sorted by task, filter (baseline first) and seed.

    Args:
        runs: the folder.
        suite: name of the suite; all of its tasks are needed.
        filters: specs to take next to the baseline; empty for all that were run on one of the tasks.

    Raises:
        UsageError: if the folder holds none, one is missing or damaged, or one is there twice.
    """
    from filters.registry import parse, suggest

    suites = catalogue.suites()
    if suite not in suites:
        raise UsageError(f"unknown suite {suite!r}; {suggest(suite, list(suites))}")
    tasks, seeds = suites[suite].tasks, range(suites[suite].seeds)
    if not runs.is_dir():
        raise UsageError(f"{runs} is no folder; give the one that the runs were written to")
    complete = (read_cell(path) for path in find_cells(runs) if status(path) == "complete")
    cells = [cell for cell in complete if cell.task in tasks and cell.seed in seeds]
    asked = {str(parse(spec)) for spec in filters} or {cell.spec for cell in cells}
    if not asked - {BASELINE}:
        command = f"python -m harness.run --suite {suite} --filter iif --out {runs}"
        raise UsageError(f"{runs} holds no complete run of a filter on {suite}; `{command}` makes some")
    specs = [BASELINE, *sorted(asked - {BASELINE})]
    return _choose(cells, [(task, spec, seed) for task in tasks for spec in specs for seed in seeds], runs)


def _choose(cells: Iterable[CellRun], wanted: list[tuple[str, str, int]], runs: Path) -> list[CellRun]:
    found: dict[tuple[str, str, int], CellRun] = {}
    for cell in cells:
        twin = found.setdefault((cell.task, cell.spec, cell.seed), cell)
        if twin is not cell and (cell.task, cell.spec, cell.seed) in wanted:
            raise UsageError(f"{twin.path} and {cell.path} are the same run; give a folder that holds only one of them")
    missing = [f"{spec} on {task} with seed {seed}" for task, spec, seed in wanted if (task, spec, seed) not in found]
    if missing:
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        raise UsageError(
            f"{runs} lacks {len(missing)} of the {len(wanted)} complete runs of this submission: "
            f"{', '.join(missing[:NAMED])}{more}; run them with harness.run, or choose filters with --filter"
        )
    return [found[key] for key in wanted]


def build(
    cells: Sequence[CellRun], *, suite: str, name: str, authors: Sequence[str], url: str | None, detail: Detail = "auto"
) -> Json:
    """The submission of these runs; nothing is checked but that the runs are alike.

    Raises:
        UsageError: if runs that must share settings or circumstances do not, or a filter's source can't be found.
    """
    by_task = {task: [cell for cell in cells if cell.task == task] for task in dict.fromkeys(c.task for c in cells)}
    by_spec = {spec: [cell for cell in cells if cell.spec == spec] for spec in dict.fromkeys(c.spec for c in cells)}
    episodes = sum(len(each) for cell in cells for each in cell.returns)
    summed_up = detail == "summary" or (detail == "auto" and episodes > MANY)
    document = {
        "schema": SCHEMA,
        "name": name,
        "authors": list(authors),
        "url": url,
        "suite": suite,
        "created": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command_of(
            suite,
            seeds=len({cell.seed for cell in cells}),
            device=cells[0].config["device"],
            specs=list(by_spec),
        ),
        "device": _one(cells, "device"),
        "status": "self-reported",
        "rerun": None,
        "digest": "",
        "provenance": _provenance(cells),
        "tasks": {task: _task(of_task) for task, of_task in by_task.items()},
        "filters": {spec: _filter(of_spec) for spec, of_spec in by_spec.items()},
        "cells": [_cell(cell, summed_up=summed_up) for cell in cells],
    }
    return document | {"digest": digest_of(document)}


def check(document: Json, out: Path) -> None:
    """Raise UsageError if the validator would refuse the document; the first reason is the message."""
    findings = examine(to_text(document).encode("utf-8", "surrogatepass"), out, accepted=[])
    failed = [(clause, messages[0]) for clause, messages in findings.items() if messages]
    if failed:
        clause, message = failed[0]
        raise UsageError(f"these runs make no valid submission ({clause}): {message}")


def _one(cells: Sequence[CellRun], key: str) -> Any:
    """The setting that all these runs share."""
    first = _settings(cells[0], key)
    for cell in cells:
        if _settings(cell, key) != first:
            raise UsageError(
                f"{cells[0].path} and {cell.path} were run with different {key}, so they can't be compared; "
                "run one of them again"
            )
    return first


def _settings(cell: CellRun, key: str) -> Any:
    value = cell.config.get(key, {})
    return {name: inner for name, inner in value.items() if name not in OF_A_RUN} if key == "args" else value


def _provenance(cells: Sequence[CellRun]) -> Json:
    first = cells[0]
    for cell in cells:
        different = sorted(key for key, value in cell.provenance.items() if first.provenance.get(key) != value)
        if different or cell.provenance.keys() != first.provenance.keys():
            raise UsageError(
                f"{first.path} and {cell.path} were run under different {' and '.join(different) or 'conditions'}, but "
                "times only compare under the same; run one of them again"
            )
    return first.provenance


def _task(cells: Sequence[CellRun]) -> Json:
    for cell in cells:
        if cell.steps.tolist() != cells[0].steps.tolist():
            raise UsageError(f"{cells[0].path} and {cell.path} have different checkpoints; run one of them again")
    return {key: _one(cells, key) for key in SHARED} | {"steps": cells[0].steps.tolist()}


def _filter(cells: Sequence[CellRun]) -> Json:
    from filters.registry import built_in

    class_path = _one(cells, "filter_class")
    tasks = {}
    for task in dict.fromkeys(cell.task for cell in cells):
        own = [cell for cell in cells if cell.task == task]
        tasks[task] = {
            "fields": _one(own, "filter_fields"),
            "files": _one(own, "filter_files"),
            "apply": _one(own, "apply"),
        }
    ours = {f"{cls.__module__}:{cls.__qualname__}" for cls in built_in().values()}
    if class_path in ours:
        return {"class": class_path, "sha256": _ran(cells), "source": None, "tasks": tasks}
    digest, text = _source(cells)
    return {"class": class_path, "sha256": digest, "source": text, "tasks": tasks}


def _ran(cells: Sequence[CellRun]) -> str:
    """The SHA-256 of the source that all runs of a filter of FilterGym were made with, whatever it is today."""
    digests = {cell.filter_source for cell in cells}
    if len(digests) > 1 or None in digests:
        raise UsageError(
            f"the runs of the filter {cells[0].spec} were made with different versions of its source; run them again "
            "with one"
        )
    return str(digests.pop())


def _source(cells: Sequence[CellRun]) -> tuple[str, str]:
    """SHA-256 and text of the file that the class of a filter from outside comes from: the very one that ran."""
    from filters.registry import find, parse, source_of, text_hash

    cls = find(parse(cells[0].spec).name)
    text = source_of(cls)
    if text is None or f"{cls.__module__}:{cls.__qualname__}" != cells[0].config["filter_class"]:
        raise UsageError(
            f"the source of {cells[0].config['filter_class']} for the filter {cells[0].spec} can't be found here; "
            "submit where the runs were made"
        )
    digest = text_hash(text)
    for cell in cells:
        if cell.filter_source not in (None, digest):
            raise UsageError(
                f"the source of the filter {cell.spec} has changed since {cell.path} was run; "
                "submit with the source that ran, or run it again"
            )
    return digest, text


def _cell(cell: CellRun, *, summed_up: bool) -> Json:
    return {
        "task": cell.task,
        "filter": cell.spec,
        "seed": cell.seed,
        "seconds": [max(round(float(seconds), 3), 0.001) for seconds in cell.seconds],
        "returns": None if summed_up else [_numbers(episodes) for episodes in cell.returns],
        "lengths": None if summed_up else [lengths.tolist() for lengths in cell.lengths],
        "summary": _summary(cell) if summed_up else None,
        "kept": [_shortest(round(float(kept), 6)) for kept in cell.kept],
        "optimizer_steps": cell.optimizer_steps.tolist(),
        "phase_seconds": {phase: round(float(seconds), 3) for phase, seconds in cell.phase_seconds.items()},
        "corruption": {
            name: [None if np.isnan(value) else round(float(value), 6) for value in values]
            for name, values in cell.corruption.items()
        },
    }


def _summary(cell: CellRun) -> Json:
    spreads = [float(episodes.std()) for episodes in cell.returns]
    return {
        "means": [_shortest(float(f"{mean:.10g}")) for mean in cell.curve],
        "spreads": [_shortest(float(f"{spread:.7g}")) for spread in spreads],
        "episodes": len(cell.returns[-1]),
        "last_returns": _numbers(cell.returns[-1]),
        "last_lengths": cell.lengths[-1].tolist(),
    }


def _numbers(values: NDArray[np.float64]) -> list[float]:
    return [_shortest(value) for value in values.tolist()]


def _shortest(value: float) -> float:
    """The same number, without a decimal point where it needs none."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


if __name__ == "__main__":
    sys.exit(run_command(main))
