"""Is every run what its folder says? Damaged, edited, mixed-up and stale cells, and what should be known of the others.

The work of `python -m harness.verify`.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from filters.errors import UsageError, one_line
from filters.registry import parse
from harness.cells.cell import Cell, changed_sources, describe, other_settings
from harness.checks.states import state_of
from harness.tasks.catalogue import find_task
from harness.tasks.own import from_config, is_own
from harness.tasks.task import Task
from leaderboard.runs.jsonfile import Json
from leaderboard.runs.jsonfile import shown as in_short
from leaderboard.runs.store import (
    cell_dir,
    find_cells,
    printable,
    read_cell,
    read_config,
    read_digests,
    read_failure,
    read_run,
)

LEFTOVER = re.compile(r"\..*\.tmp")
"""names of files that a crash in the middle of writing leaves behind"""


@dataclass(frozen=True)
class Findings:
    """What is to say about a folder of runs."""

    states: dict[str, int]
    """how many cells are complete, failed, incomplete or running"""
    problems: tuple[str, ...]
    """a line for each cell that is not what its folder says"""
    notes: tuple[str, ...]
    """what may be right, but should be known"""


def verify(root: Path, *, trust: Collection[str] = ()) -> Findings:
    """Check all cells at or below a folder; changes nothing and imports no module that is not trusted.

    Raises:
        UsageError: if there is no such folder or no cell in it.
    """
    if not root.is_dir():
        raise UsageError(f"{root} is no folder; give the one that the runs were written to")
    cells = find_cells(root)
    if not cells:
        raise UsageError(f"{root} holds no runs; `python -m harness.run --out {root}` makes some")
    states = [state_of(path) for path in cells]
    problems, notes = list[str](), list[str]()
    for path, found in zip(cells, states, strict=True):
        try:
            if found != "running":
                notes += check_cell(path, found, trust)
        except UsageError as error:
            problems.append(f"{shown(path)}: {shown(error)}")
        problems += links(path)
    for task, versions in sorted(mixed_versions(cells).items()):
        notes.append(f"{task}: runs were made with different {versions}; compare with care")
    return Findings(dict(Counter(states)), tuple(problems), tuple(notes))


def shown(what: object) -> str:
    """A path or an error on one printable line."""
    return one_line(what if isinstance(what, Exception) else Exception(printable(str(what))))


def links(path: Path) -> list[str]:
    """A line if something in the cell's folder leads elsewhere."""
    try:
        found = sorted(entry.name for entry in path.iterdir() if entry.is_symlink())
    except OSError as error:
        return [f"{shown(path)}: can't be listed ({error.strerror})"]
    return [f"{shown(path)}: {', '.join(map(shown, found))} is a link, which no run makes; delete it"] if found else []


def check_cell(path: Path, found: str, trust: Collection[str]) -> list[str]:
    """Check one cell; returns notes.

    Raises:
        UsageError: the cell is not what its folder says.
    """
    if found != "complete":
        read_failure(path)
        return []
    run, config = read_cell(path), read_config(path)
    if cell_dir(Path(), run.task, run.spec, run.seed).parts != path.absolute().parts[-3:]:
        raise UsageError(f"holds {run.task} {run.spec} seed {run.seed}, which belongs in another folder; move it there")
    leftovers = sorted(entry.name for entry in path.iterdir() if LEFTOVER.fullmatch(entry.name))
    if leftovers:
        raise UsageError(f"{leftovers[0]} was left over by a crash; delete it")
    rounds = expected_rounds(config)
    if rounds is not None and len(run.kept) != rounds:
        raise UsageError(f"has {len(run.kept)} rounds instead of {rounds}; delete it and run the same command again")
    if config["args"].get("compile") == "on" and run.compiled is False:
        raise UsageError(
            "was to be compiled but trained without, so it can't be compared with compiled runs; delete it "
            "and run the same command again where there is a C++ compiler, or run all with --compile off"
        )
    notes = [] if read_digests(path) else [f"{shown(path)}: older than digests, so edits can't be found"]
    return notes + check_identity(path, config, trust)


def check_identity(path: Path, config: Json, trust: Collection[str]) -> list[str]:
    """Compare the cell with what the same command would make today; returns notes.

    Raises:
        UsageError: its task or its filter is another today.
    """
    strangers = sorted(import_paths(config["filter"]) - set(trust))
    if strangers:
        return [f"{shown(path)}: {strangers[0]} was not compared; say --trust {strangers[0]} to import it"]
    cell = rebuild(path, config)
    different = other_settings(config, describe(cell))
    if different:
        raise UsageError(f"is stale: {', '.join(name_changes(config, cell, different))} differ today")
    changed = changed_sources(cell)
    return [f"{shown(path)}: made by another version of {', '.join(changed)}"] if changed else []


def name_changes(config: Json, cell: Cell, keys: Sequence[str]) -> list[str]:
    """The settings that differ, and inside objects which."""
    today, names = describe(cell), list[str]()
    for key in keys:
        ours, theirs = config.get(key), today.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            names += [f"{key}.{inner}" for inner in other_settings(ours, theirs)]
        else:
            names.append(key)
    return [printable(name)[:80] for name in names[:10]]


def import_paths(spec: str) -> set[str]:
    """All import paths that making a spec would import, those of filters in its fields included."""
    parsed = parse(spec)
    found = {parsed.name} if ":" in parsed.name else set()
    for _, value in parsed.settings:
        if ":" in value:
            found |= import_paths(value.replace(";", ","))
    return found


def rebuild(path: Path, config: Json) -> Cell:
    """The cell that a config describes, with today's task; raises UsageError if there is no such task."""
    own = is_own(config["task"])  # such a task is what its own config says: nothing else here knows it
    task = from_config(config) if own else varied(config["task"], config["args"])
    out, device = path.absolute().parents[2], config["device"]
    if device not in ("cpu", "cuda"):
        raise UsageError(f"its device {device!r} is unknown; delete {path} and run the same command again")
    return Cell(task=task, spec=config["filter"], seed=config["seed"], out=out, device=device)


def varied(task_id: str, args: Json) -> Task:
    """Today's task of an id such as `FrozenLake/v1@envpool@mask`, compiled or not as `args` say."""
    base, *changes = task_id.split("@")
    task, settings = find_task(base), dict[str, Any]()
    for change in changes:
        if found := re.fullmatch(r"eval-([0-9]{1,9})-every-([0-9]{1,9})", change):
            settings |= {"eval_episodes": int(found[1]), "eval_every": int(found[2])}
        elif found := re.fullmatch(r"checkpoint-([0-9]{1,9})", change):
            settings["checkpoint_every"] = int(found[1])
        elif found := re.fullmatch(r"corrupt-([a-z-]+)-([0-9.e+-]{1,20})", change):
            settings["corrupt"] = f"{found[1]}:{found[2]}"
        elif change in ("repack", "mask"):
            settings["apply"] = change
        elif change in ("gymnasium", "envpool"):
            settings["env_backend"] = change
        else:
            raise UsageError(f"task {task_id!r} has the unknown variation {change!r}")
    task = task.varied(**({"env_backend": task.args.env_backend} | settings))
    compiled = args.get("compile")
    return replace(task, args=replace(task.args, compile=compiled)) if compiled in ("auto", "on", "off") else task


def expected_rounds(config: Json) -> int | None:
    """Rounds that the settings ask for; None if they don't say."""
    sizes = [config["args"].get(name) for name in ("total_steps", "num_envs", "num_steps")]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    total, envs, steps = cast(list[int], sizes)
    return -(-total // (envs * steps))


def mixed_versions(cells: Sequence[Path]) -> dict[str, str]:
    """By task, the packages and the Python that differ between its complete runs."""
    seen: dict[str, dict[str, set[str]]] = {}
    for path in cells:
        try:
            task, made_by = read_config(path)["task"], read_run(path).get("provenance")
        except UsageError:  # not complete, or damaged and named already
            continue
        if isinstance(made_by, dict) and isinstance(made_by.get("packages"), dict):
            for name, version in ({"python": made_by.get("python")} | made_by["packages"]).items():
                seen.setdefault(task, {}).setdefault(printable(name)[:40], set()).add(in_short(version).strip("'"))
    named = {
        task: [f"{name} ({', '.join(sorted(found))})" for name, found in sorted(names.items()) if len(found) > 1]
        for task, names in seen.items()
    }
    return {task: ", ".join(names) for task, names in named.items() if names}
