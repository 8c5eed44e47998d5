"""What is a submission, how is it written, and which runs does a file of it hold?

One submission is one JSON file: the baseline and one or more filters on all tasks of a suite, as SCHEMA.md documents
it. Reading one checks its shape and its digest and trusts nothing; `leaderboard.validate` checks what it claims.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from filters.errors import UsageError
from leaderboard.entries import schema_v1, schema_v2
from leaderboard.entries.schema import Place, Problem, Record, Text, shown
from leaderboard.runs.store import CellRun

SCHEMAS: dict[str, Record] = {schema_v1.NUMBER: schema_v1.SCHEMA, schema_v2.NUMBER: schema_v2.SCHEMA}
"""every schema ever accepted, by number"""
SCHEMA = schema_v2.NUMBER
"""the schema that is written"""
SUBMISSIONS = Path(__file__).parents[1] / "submissions"
"""where the accepted entries are"""
MAX_BYTES = 8 * 2**20
KEY = Text(longest=64, pattern=r"[a-z0-9-]+", form="lower-case letters, digits and hyphens")
OUTSIDE_DIGEST = ("digest", "status", "rerun")
"""fields that the digest does not cover"""

Status = Literal["self-reported", "re-run"]
Json = dict[str, Any]


@dataclass(frozen=True)
class FilterSource:
    """A filter of an entry, as it was when it ran."""

    class_path: str
    """`module:Class`"""
    fields: dict[str, Json]
    """by task: its hyperparameters, the task's own defaults included"""
    sha256: str
    """of the class's source file"""
    source: str | None
    """that file; None for the filters of FilterGym. Never run, only shown."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One group's results on one suite."""

    key: str
    """stem of the file: identifies the entry and its page"""
    name: str
    """what people read; any printable text"""
    authors: tuple[str, ...]
    url: str | None
    """http(s) only"""
    suite: str
    created: str
    """ISO date"""
    command: str
    """the harness.run command that makes these runs again"""
    status: Status
    digest: str
    """SHA-256 of the content"""
    cells: tuple[CellRun, ...]
    """all complete; `path` is made up"""
    filters: dict[str, FilterSource]
    """by spec, the baseline included"""
    provenance: Json
    """code, packages, platform, device, threads and jobs, common to all cells"""
    rerun: Json | None = field(default=None)
    """what came out when cells were run again; None while self-reported"""


class NotReadable(Exception):  # noqa: N818  a finding about a file, not a defect
    """The file is no JSON that could be a submission; the message is what comes after the file's name."""


def parse_bytes(raw: bytes) -> Any:
    """Strict JSON: UTF-8, no NaN or infinity, no number of absurd length, no key twice.

    Raises:
        NotReadable: says what is wrong.
    """
    if len(raw) > MAX_BYTES:
        raise NotReadable(f"is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_no_twins,
            parse_constant=_no_constant,
            parse_int=_short_int,
            parse_float=_finite_float,
        )
    except UnicodeDecodeError as error:
        raise NotReadable(f"is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise NotReadable("is nested too deep") from error
    except json.JSONDecodeError as error:
        raise NotReadable(f"is not JSON ({error.msg}, line {error.lineno})") from error


def read_json(path: Path) -> Any:
    """The parsed file.

    Raises:
        NotReadable: if it can't be read or is no strict JSON.
    """
    try:
        with path.open("rb") as file:
            return parse_bytes(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise NotReadable(f"can't be read ({error.strerror})") from error


def shape_problems(document: Any) -> list[Problem]:
    """Every way in which the document is not of the schema that it names; empty if it is."""
    if not isinstance(document, dict):
        return [Problem("", "the file", f"has to hold an object, got {shown(document)}")]
    number = document.get("schema")
    if not isinstance(number, str) or number not in SCHEMAS:
        known = ", ".join(SCHEMAS)
        return [Problem("", "schema", f"is {shown(number)}, but this version of FilterGym reads {known}")]
    return list(SCHEMAS[number].problems(document, Place()))


def digest_of(document: Json) -> str:
    """SHA-256 of the content: of everything but `digest`, `status` and `rerun`, as JSON with sorted keys."""
    content = {key: value for key, value in document.items() if key not in OUTSIDE_DIGEST}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def read_entry(path: Path) -> Entry:
    """Read one submission.

    Raises:
        UsageError: if it can't be read, is not of its schema, or its content was changed after it was made.
    """
    try:
        document = read_json(path)
    except NotReadable as error:
        raise UsageError(f"{path} {error}; is it a submission?") from error
    problems = [f"{problem.where} {problem.message}" for problem in shape_problems(document)]
    problems += [f"its name {problem.message}" for problem in KEY.problems(path.stem, Place())]
    if not problems and document["digest"] != digest_of(document):
        problems = ["its content is not what its digest was made of"]
    if problems:
        raise UsageError(f"{path} is no valid submission: {problems[0]}; `python -m leaderboard.validate` says more")
    return entry_of(document, path.stem)


def read_entries(folder: Path = SUBMISSIONS) -> list[Entry]:
    """Read all submissions of a folder, sorted by key.

    Raises:
        UsageError: if there is no such folder, or one of its files is no submission.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the one that holds the submissions")
    return [read_entry(path) for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)]


def entry_of(document: Json, key: str) -> Entry:
    """The entry in a document that has no shape problems."""
    sources = {
        spec: FilterSource(
            class_path=filter["class"],
            fields={task: setting["fields"] for task, setting in filter["tasks"].items()},
            sha256=filter["sha256"],
            source=filter["source"],
        )
        for spec, filter in document["filters"].items()
    }
    return Entry(
        key=key,
        name=document["name"],
        authors=tuple(document["authors"]),
        url=document["url"],
        suite=document["suite"],
        created=document["created"],
        command=document["command"],
        status=cast(Status, document["status"]),
        digest=document["digest"],
        cells=tuple(_cells(document, key)),
        filters=sources,
        provenance=document["provenance"],
        rerun=document["rerun"],
    )


def _cells(document: Json, key: str) -> Iterator[CellRun]:
    for cell in document["cells"]:
        missing = [
            f"{kind}s lacks {name!r}"
            for kind, name in (("task", cell["task"]), ("filter", cell["filter"]))
            if name not in document[f"{kind}s"]
        ]
        if not missing and cell["task"] not in document["filters"][cell["filter"]]["tasks"]:
            missing = [f"the filter {cell['filter']!r} has no settings for {cell['task']!r}"]
        if missing:
            raise UsageError(f"the submission {key} has a run that nothing describes: {missing[0]}; make it anew")
        yield _cell(document, cell, key)


def _cell(document: Json, cell: Json, key: str) -> CellRun:
    task, filter = document["tasks"][cell["task"]], document["filters"][cell["filter"]]
    setting = filter["tasks"][cell["task"]]
    steps = np.array(task["steps"], dtype=np.int64)
    summary = cell.get("summary")
    evaluated = len(summary["means"] if summary else cell["returns"] or ())
    if not len(steps) == len(cell["seconds"]) == evaluated:
        raise UsageError(
            f"the submission {key} has {evaluated} checkpoints of returns and {len(cell['seconds'])} of "
            f"seconds on {cell['task']}, but {len(steps)} of steps; make it anew"
        )
    optimizer_steps = np.array(cell["optimizer_steps"], dtype=np.int64)
    config = {
        "schema": 1,
        "task": cell["task"],
        "filter": cell["filter"],
        "filter_class": filter["class"],
        "filter_fields": setting["fields"],
        "filter_files": setting["files"],
        "apply": setting["apply"],
        "seed": cell["seed"],
        "device": document["device"],
        "agent": task["agent"],
        "args": task["args"] | {"seed": cell["seed"], "device": document["device"]},
        "references": task["references"],
    }
    return CellRun(
        path=Path(key) / cell["task"].replace("/", "-") / cell["filter"].replace("/", "-") / f"seed-{cell['seed']}",
        config=config,
        task=cell["task"],
        spec=cell["filter"],
        seed=cell["seed"],
        steps=steps,
        seconds=np.array(cell["seconds"], dtype=np.float64),
        returns=tuple(np.array(each, dtype=np.float64) for each in episodes_of(cell, "returns")),
        means=np.array(summary["means"], dtype=np.float64) if summary else None,
        kept=np.array(cell["kept"], dtype=np.float64),
        optimizer_steps=optimizer_steps,
        skipped_rounds=int((optimizer_steps == 0).sum()),
        phase_seconds={phase: float(seconds) for phase, seconds in cell["phase_seconds"].items()},
        references=task["references"],
        lengths=tuple(np.array(each, dtype=np.int64) for each in episodes_of(cell, "lengths")),
        provenance=document["provenance"],
        corruption={
            name: np.array([np.nan if value is None else value for value in values])
            for name, values in cell["corruption"].items()
        },
    )


def episodes_of(cell: Json, name: Literal["returns", "lengths"]) -> list[list[float]]:
    """The evaluation episodes that a run lists: of all checkpoints, or of the last alone where it sums them up."""
    summary = cell.get("summary")
    return [summary[f"last_{name}"]] if summary else cell[name] or []


def to_text(document: Json) -> str:
    """The document as text that a diff can show: a line for each field, and for each list of scalars."""
    return _lines(document, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    deeper = indent + " "
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(key)}: {_lines(item, deeper)}" for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, list | dict) for item in value):
        items = [_lines(item, deeper) for item in value]
    else:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return start + "\n" + ",\n".join(deeper + item for item in items) + "\n" + indent + end


def write_document(path: Path, document: Json) -> None:
    """Write a submission; a reader sees the old file or the whole new one. Raises UsageError if it can't be written."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(to_text(document), encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"can't write {path} ({error.strerror}); choose another --out") from error
    finally:
        partial.unlink(missing_ok=True)


def _no_twins(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise NotReadable(f"has the key {shown(twin)} twice in one object")
    return found


def _no_constant(text: str) -> None:
    raise NotReadable(f"holds {text}, which is no number")


def _short_int(text: str) -> int:
    if len(text) > 19:
        raise NotReadable(f"holds a whole number of {len(text)} digits")
    return int(text)


def _finite_float(text: str) -> float:
    number = float(text)
    if len(text) > 40 or not math.isfinite(number):
        raise NotReadable(f"holds {shown(text)}, which is no finite number of sensible length")
    return number
