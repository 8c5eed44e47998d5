"""How does a task from outside become a task here, and how is it told from FilterGym's own?

`--task my_pkg.my_mod:MY_TASK`, or the entry points of an installed package (`filtergym.tasks`, `filtergym.suites`);
`harness.tasks.recipe` makes one from an environment. Such a task's id ends in a hash of its settings
(`my-Env/x3f9a2c1b`), so it is never taken for another one, nor for one of FilterGym's.
"""

import hashlib
import importlib
import importlib.metadata
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from filters.errors import UsageError
from filters.registry import suggest
from harness.tasks.catalogue import SUITES, TASKS, find_suite, find_task
from harness.tasks.task import AgentArgs, Task

TASK_GROUP, SUITE_GROUP = "filtergym.tasks", "filtergym.suites"
"""groups of entry points: a name and a `Task`, a name and a sequence of `Task`s or of names of tasks"""
AGENTS: dict[str, type[AgentArgs]] = {
    "ppo": ppo.Args,
    "ppo_continuous": ppo_continuous.Args,
    "ppo_minigrid": ppo_minigrid.Args,
    "ppo_atari": ppo_atari.Args,
}


def is_own(task_id: str) -> bool:
    """Whether a task's id is that of a task from outside."""
    return re.search(r"/x[0-9a-f]{8}(@|$)", task_id) is not None


def find(name: str) -> Task:
    """The task of that name: FilterGym's, an installed package's, or at an import path `module:TASK`.

    Raises:
        UsageError: there is none, or what is there is no task.
    """
    if ":" in name:
        return named(_import(name, "task"), name)
    points = _points(TASK_GROUP)
    if name in points:
        return named(_load(points[name]), name)
    try:
        return find_task(name)
    except UsageError:
        if "/" not in name and not points:
            raise
        raise UsageError(f"unknown task {name!r}; {suggest(name, [*TASKS, *points])}") from None


def find_tasks(suite: str) -> tuple[Task, ...]:
    """The tasks of a suite: FilterGym's or an installed package's; raises UsageError."""
    points = _points(SUITE_GROUP)
    if suite in points and suite not in SUITES:
        members = _load(points[suite])
        if not isinstance(members, Sequence) or isinstance(members, str) or not members:
            raise UsageError(f"suite {suite!r}: {points[suite].value} has to be a list of tasks or of names of tasks")
        return tuple(find(one) if isinstance(one, str) else named(one, suite) for one in members)
    if suite not in SUITES:
        raise UsageError(f"unknown suite {suite!r}; {suggest(suite, [*SUITES, *points])}")
    return find_suite(suite)


def outside() -> tuple[dict[str, str], dict[str, str]]:
    """Names and import paths of the tasks and of the suites of installed packages; loads nothing."""
    tasks, suites = (
        {name: point.value for name, point in _points(group).items()} for group in (TASK_GROUP, SUITE_GROUP)
    )
    return tasks, suites


@cache
def _points(group: str) -> dict[str, importlib.metadata.EntryPoint]:
    points = importlib.metadata.entry_points(group=group)
    return {point.name: point for point in points if point.name not in TASKS}


def _load(point: importlib.metadata.EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"{point.name!r} of the installed package entry point {point.value!r} can't be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _import(path: str, what: str) -> object:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"can't import {module_name!r} for {what} {path!r}: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, attribute):
        raise UsageError(f"module {module_name!r} has no {attribute!r}; write module:TASK, as in my_pkg.my_mod:MY_TASK")
    return getattr(module, attribute)


def named(found: object, name: str) -> Task:
    """A task from outside under its own kind of id; raises UsageError if it is no task."""
    if not isinstance(found, Task):
        raise UsageError(f"{name!r} is no task but {type(found).__name__}: make a harness.tasks.task.Task of it")
    stem = re.sub(r"/.*", "", found.id) or "task"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", stem):
        raise UsageError(f"task {name!r}: the id {found.id!r} has to begin with letters, digits, dots and hyphens")
    return replace(found, id=f"{stem}/x{settings_hash(found)}")


def settings_hash(task: Task) -> str:
    """Eight hex digits of all that decides what a run on the task does."""
    args = {name: value for name, value in asdict(task.args).items() if name not in ("seed", "device", "compile")}
    said = {"agent": task.agent, "args": args, "filters": task.filter_defaults, "apply": task.apply}
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:8]


def from_config(config: Mapping[str, Any]) -> Task:
    """The task from outside that a run's config describes; imports nothing.

    Raises:
        UsageError: the config is not one that a run of such a task writes.
    """
    agent, references = config["agent"], config["references"]
    if agent not in AGENTS:
        raise UsageError(f"its agent {str(agent)[:40]!r} is unknown")
    known = {field.name for field in fields(AGENTS[agent])}
    if config["args"].keys() != known:
        odd = sorted(known ^ config["args"].keys())
        raise UsageError(f"its settings are not those of algos.{agent} ({odd[0]})")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in config["args"].items()}
    apply = config.get("task_apply")
    task = Task(
        id=config["task"],
        about=str(config["args"]["env_id"]),
        args=AGENTS[agent](**values),  # type: ignore[arg-type]
        random=references["random"],
        solved=math.nan if references["solved"] is None else references["solved"],
        returns=(-math.inf, math.inf),
        filter_defaults=config.get("task_filters", {}),
        apply=apply if apply in ("repack", "mask") else None,
    )
    if "@" not in task.id and task.id.rpartition("/x")[2] != settings_hash(task):
        raise UsageError("its task's id is not that of its settings: it was edited, or another version made it")
    return task
