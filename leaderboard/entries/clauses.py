"""Which claims of a submission have to hold, whatever its numbers are? One function per clause.

A clause yields a sentence for everything that is wrong. It may rely on the shape of the fields that
`leaderboard.validate` names for it, and on nothing else.
"""

import datetime
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leaderboard.entries import catalogue
from leaderboard.entries.catalogue import TaskFacts
from leaderboard.entries.fingerprints import Accepted, fingerprints
from leaderboard.entries.schema import Place, shown
from leaderboard.entries.submission import KEY, Json, digest_of

BASELINE = "none"
NEEDED_PACKAGES = ("filtergym", "torch", "numpy", "gymnasium")
ABSOLUTE = re.compile(r"""(?:^|[\s=:;,'"(\[{])(?:~?/|[A-Za-z]:[\\/]|\\\\)""")
UPWARDS = re.compile(r"(?:^|[\\/=:;,])\.\.(?:$|[\\/])")


@dataclass(frozen=True, eq=False)
class Claim:
    """A parsed submission, where it lies, and what it must not repeat."""

    document: Json
    path: Path
    accepted: Sequence[Accepted] = ()

    @cached_property
    def tasks(self) -> dict[str, TaskFacts]:
        """The tasks of the submission that this version of FilterGym knows."""
        known = catalogue.tasks()
        return {task: known[task] for task in self.document["tasks"] if task in known}

    @property
    def seeds(self) -> range:
        """The seeds of its suite; none if there is no such suite."""
        suite = catalogue.suites().get(self.document["suite"])
        return range(suite.seeds if suite else 0)


Clause = Callable[[Claim], Iterator[str]]


def command_of(suite: str, *, seeds: int, device: str, specs: Iterable[str]) -> str:
    """The command that makes the runs of a submission again."""
    words = ["python", "-m", "harness.run", "--suite", suite, "--seeds", str(seeds)]
    words += [] if device == "cpu" else ["--device", device]
    return shlex.join([*words, "--filter", *(spec for spec in specs if spec != BASELINE)])


def identity(claim: Claim) -> Iterator[str]:
    """The file's name can be a key, and date and command are what they have to be."""
    if claim.path.suffix != ".json":
        yield f"the file has to be called KEY.json, got {shown(claim.path.name)}"
    for problem in KEY.problems(claim.path.stem, Place()):
        yield f"the file's name without .json {problem.message}"
    created = claim.document["created"]
    if not _is_date(created):
        yield f"created is {created}, which is no date"
    command = command_of(
        claim.document["suite"],
        seeds=len(claim.seeds),
        device=claim.document["device"],
        specs=sorted(claim.document["filters"]),
    )
    if claim.document["command"] != command:
        yield f"command has to be {command}"


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def suite(claim: Claim) -> Iterator[str]:
    """The suite is known, and the tasks are exactly its tasks in their versions."""
    name, tasks = claim.document["suite"], claim.document["tasks"]
    suites = catalogue.suites()
    if name not in suites:
        yield f"there is no suite {shown(name)}; there is: {', '.join(suites)}"
        return
    for task in suites[name].tasks:
        if task not in tasks:
            yield f"the task {task} of the suite {name} is missing"
    for task in tasks:
        if task not in suites[name].tasks:
            versions = [own for own in suites[name].tasks if own.rpartition("/")[0] == task.rpartition("/")[0]]
            instead = f"; this FilterGym has {versions[0]}, and ranks others apart" if versions else ""
            yield f"the task {task} is not in the suite {name}{instead}"


def runs(claim: Claim) -> Iterator[str]:
    """Every filter has one run on every task with each of the suite's seeds, and there are no others."""
    document = claim.document
    found = Counter((cell["task"], cell["filter"], cell["seed"]) for cell in document["cells"])
    wanted = {(task, spec, seed) for task in document["tasks"] for spec in document["filters"] for seed in claim.seeds}
    for task, spec, seed in sorted(wanted - found.keys()):
        yield f"{spec} on {task} with seed {seed} is missing"
    for task, spec, seed in sorted(found.keys() - wanted):
        yield f"{spec} on {task} with seed {seed} does not belong here"
    for (task, spec, seed), times in sorted(found.items()):
        if times > 1:
            yield f"{spec} on {task} with seed {seed} is there {times} times"


def baseline(claim: Claim) -> Iterator[str]:
    """The baseline `none` is there, is what it is, and is not alone."""
    filters = claim.document["filters"]
    if BASELINE not in filters:
        yield f"the baseline {BASELINE} is missing"
    if not filters.keys() - {BASELINE}:
        yield f"there is no filter next to the baseline {BASELINE}"


def settings(claim: Claim) -> Iterator[str]:
    """Agent, arguments (the backend among them) and references are the task's own."""
    for name, task in claim.tasks.items():
        found = claim.document["tasks"][name]
        wanted: Json = {"agent": task.agent, "references": task.references}
        own = dict(task.args)
        if found["args"].get("compile") in ("on", "off"):  # either is fine; `auto` was decided before the run
            own["compile"] = found["args"]["compile"]
        wanted |= {"args": own}
        for key, value in wanted.items():
            for place, ours, theirs in _differences(key, value, found[key]):
                yield f"{name}: {place} has to be {shown(ours)}, got {shown(theirs)}"


def _differences(place: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from _differences(f"{place}.{key}", ours.get(key, "absent"), theirs.get(key, "absent"))
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield place, ours, theirs


def harness(claim: Claim) -> Iterator[str]:
    """The versions that made the results are known, and the hardware fits the device kind."""
    provenance = claim.document["provenance"]
    for name in NEEDED_PACKAGES:
        if name not in provenance["packages"]:
            yield f"provenance.packages lacks the version of {name}"
    theirs, ours = provenance["packages"].get("filtergym"), _installed("filtergym")
    if theirs and ours and _release(theirs) > _release(ours):
        yield f"it was made with FilterGym {theirs}, but this is {ours}; validate with the newer one"
    device = claim.document["device"]
    if (device == "cpu") != (provenance["device"] == "cpu"):
        yield f"device is {device}, but provenance.device is {shown(provenance['device'])}"


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def paths(claim: Claim) -> Iterator[str]:
    """No text but the included sources leads to a place on somebody's machine."""
    for place in ("provenance", "tasks", "filters", "cells"):
        for where, text in _texts(place, claim.document[place]):
            if ABSOLUTE.search(text):
                yield f"{where} holds an absolute path ({shown(text)}); run with a relative one"
            elif UPWARDS.search(text):
                yield f"{where} holds a path that leads upwards ({shown(text)})"


def _texts(where: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield where, key
            if key != "source":
                yield from _texts(f"{where}.{key}", item)
    elif isinstance(value, list) and not (value and isinstance(value[0], int | float)):
        for index, item in enumerate(value):
            yield from _texts(f"{where}[{index}]", item)


def status(claim: Claim) -> Iterator[str]:
    """`re-run` stands next to the record of a re-run of this very content, `self-reported` next to none."""
    document = claim.document
    record = document["rerun"]
    if (document["status"] == "re-run") != (record is not None):
        yield f"status is {document['status']}, but there is {'no' if record is None else 'a'} record of a re-run"
    if record is None:
        return
    if record["digest"] != document["digest"]:
        yield "the record of the re-run is about another content"
    if not _is_date(record["date"]):
        yield f"the re-run's date is {record['date']}, which is no date"
    ours = {(cell["task"], cell["filter"], cell["seed"]) for cell in document["cells"]}
    again = [(cell["task"], cell["filter"], cell["seed"]) for cell in record["cells"]]
    if not set(again) <= ours or len(set(again)) < len(again):
        yield "the record of the re-run names a run twice, or one that is not in the submission"
    if ("consistent" in {cell["verdict"] for cell in record["cells"]}) != (record["verdict"] == "consistent"):
        yield f"the re-run's verdict is {record['verdict']}, which is not the weaker one of its cells"


def digest(claim: Claim) -> Iterator[str]:
    """The digest is that of the content."""
    try:
        found = digest_of(claim.document)
    except RecursionError:
        yield "the content is nested too deep for a digest"
        return
    if found != claim.document["digest"]:
        yield f"digest is {claim.document['digest'][:12]}…, but the content has {found[:12]}…: it was changed"


def duplicate(claim: Claim) -> Iterator[str]:
    """It is not an accepted entry again, under whatever name, and its results are nobody else's."""
    if any(other.key == claim.path.stem for other in claim.accepted):
        yield f"an accepted entry is called {claim.path.stem}; choose another name for the file"
    prints = fingerprints(claim.document)
    own = {spec: prints[spec] for spec in prints if prints[spec] != prints.get(BASELINE)}
    for other in claim.accepted:
        if other.digest == claim.document["digest"]:
            yield f"it is the accepted entry {other.key} again"
        elif own and set(own.values()) <= other.fingerprints.keys():
            yield f"all of its filters have exactly the returns of the accepted entry {other.key}"
        else:
            for spec in sorted(own):
                class_path = claim.document["filters"].get(spec, {}).get("class")
                theirs = other.fingerprints.get(own[spec], class_path)
                if theirs != class_path:
                    yield f"{spec} has exactly the returns of {theirs} in the accepted entry {other.key}"
