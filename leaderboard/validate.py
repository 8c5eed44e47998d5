"""Is a submission sound? One line per clause; `python -m leaderboard.validate FILE…`.

Nothing in a submission is run or imported: its texts are compared and its numbers are counted.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from filters.errors import UsageError, run_command
from leaderboard.entries import clauses, clauses_filters, clauses_runs
from leaderboard.entries.clauses import BASELINE, Claim, Clause
from leaderboard.entries.fingerprints import Accepted, accepted
from leaderboard.entries.schema import Problem
from leaderboard.entries.submission import MAX_BYTES, SUBMISSIONS, NotReadable, parse_bytes, shape_problems

SHOWN = 10
"""failures of one clause that are printed"""
CLAUSES: dict[str, tuple[Clause, tuple[str, ...]]] = {
    "identity": (clauses.identity, ("created", "command", "suite", "device", "filters")),
    "suite": (clauses.suite, ("suite", "tasks")),
    "runs": (clauses.runs, ("suite", "tasks", "filters", "cells.task", "cells.filter", "cells.seed")),
    "baseline": (clauses.baseline, ("filters",)),
    "filters": (clauses_filters.filters, ("tasks", "filters")),
    "settings": (clauses.settings, ("tasks",)),
    "harness": (clauses.harness, ("provenance", "device")),
    "checkpoints": (clauses_runs.checkpoints, ("tasks", "cells")),
    "returns": (
        clauses_runs.returns,
        ("tasks", "cells.task", "cells.filter", "cells.seed", "cells.returns", "cells.summary"),
    ),
    "clocks": (clauses_runs.clocks, ("cells",)),
    "kept": (clauses_runs.kept, ("tasks", "filters", "cells")),
    "paths": (clauses.paths, ("provenance", "tasks", "filters", "cells")),
    "status": (clauses.status, ("status", "rerun", "digest", "cells")),
    "digest": (clauses.digest, ("digest",)),
    "duplicate": (clauses.duplicate, ("",)),
}
"""by name: the clause, and the fields whose shape it relies on (the empty name is the whole document)"""
BEFORE = ("file", "schema")
"""the clauses that the others build on"""
PERSONAL = ("name", "authors", "url", "created", "command")
"""fields whose shape is the clause `identity`"""

Findings = dict[str, list[str] | None]
"""by clause: what is wrong, nothing if all is well, None if it could not be tried"""


@dataclass(frozen=True)
class Args:
    """Hold submissions against every clause; exit code 1 if one fails."""

    files: tyro.conf.Positional[tuple[Path, ...]]
    """the submissions"""
    submissions: Path = SUBMISSIONS
    """folder of the accepted entries that they must not repeat"""


def main(argv: list[str] | None = None) -> int:
    """Print a line per clause and file; returns the exit code."""
    args = tyro.cli(Args, args=argv, prog="python -m leaderboard.validate", description=__doc__)
    if not args.files:
        raise UsageError("say which files to validate, such as leaderboard/submissions/*.json")
    known = read_accepted(args.submissions, but=args.files)
    failed = 0
    for path in args.files:
        findings = examine(read(path), path, accepted=known)
        print_findings(path, findings)
        failed += not is_sound(findings)
        known += [_as_accepted(path)] if is_sound(findings) else []
    return 1 if failed else 0


def examine(raw: bytes, path: Path, *, accepted: Sequence[Accepted]) -> Findings:
    """Try every clause on the bytes of a submission.

    Args:
        raw: the file's content; anything at all.
        path: where it lies, for its name.
        accepted: entries that it must not repeat.
    """
    findings: Findings = dict.fromkeys([*BEFORE, *CLAUSES])
    try:
        document = parse_bytes(raw)
    except NotReadable as error:
        return findings | {"file": [f"it {error}"]}
    problems = shape_problems(document)
    sentences = {problem: f"{problem.where} {problem.message}" for problem in problems}
    findings["file"] = []
    findings["schema"] = [text for problem, text in sentences.items() if not _personal(problem)]
    personal = [text for problem, text in sentences.items() if _personal(problem)]
    claim = Claim(document, path, accepted)
    for name, (clause, needs) in CLAUSES.items():
        if not any(_concerns(problem, need) for problem in problems for need in needs):
            findings[name] = list(clause(claim))
    if personal:
        findings["identity"] = personal + (findings["identity"] or [])
    return findings


def is_sound(findings: Findings) -> bool:
    """Whether every clause was tried and holds."""
    return all(messages == [] for messages in findings.values())


def read(path: Path) -> bytes:
    """The start of a file, as much as tells whether it is too large; raises UsageError if it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read ({error.strerror}); give the file of a submission") from error


def read_accepted(folder: Path, *, but: Iterable[Path] = ()) -> list[Accepted]:
    """What new submissions must not repeat of the entries in a folder; none if there is no such folder.

    Args:
        folder: where the accepted entries are.
        but: files that are left out because they are being validated themselves.

    Raises:
        UsageError: if one of the entries is not readable.
    """
    left_out = {path.resolve() for path in but}
    return [_as_accepted(path) for path in sorted(folder.glob("*.json")) if path.resolve() not in left_out]


def _as_accepted(path: Path) -> Accepted:
    raw = read(path)
    try:
        document = parse_bytes(raw)
    except NotReadable as error:
        raise UsageError(f"the accepted entry {path} {error}; restore it") from error
    problems = shape_problems(document)
    if problems:
        raise UsageError(
            f"the accepted entry {path} is damaged ({problems[0].where} {problems[0].message}); restore it"
        )
    return accepted(document, path.stem, baseline=BASELINE)


def _personal(problem: Problem) -> bool:
    return problem.field.split(".")[0] in PERSONAL


def _concerns(problem: Problem, need: str) -> bool:
    """Whether a problem lies in, or around, a field that a clause needs."""
    inside = not need or problem.field == need or problem.field.startswith(f"{need}.")
    return inside or not problem.field or need.startswith(f"{problem.field}.")


def print_findings(path: Path, findings: Findings) -> None:
    """One line per clause, and one per failure below it."""
    name = str(path) if str(path).isprintable() else ascii(str(path))
    print(f"{name}: {'sound' if is_sound(findings) else 'NOT SOUND'}")
    for clause, messages in findings.items():
        mark = "–     " if messages is None else "FAILED" if messages else "ok    "
        print(f"  {mark}  {clause}{'' if messages is not None else ': not tried, because the shape fails'}")
        for message in (messages or [])[:SHOWN]:
            print(f"          {message}")
        if messages and len(messages) > SHOWN:
            print(f"          and {len(messages) - SHOWN} more")


if __name__ == "__main__":
    sys.exit(run_command(main))
