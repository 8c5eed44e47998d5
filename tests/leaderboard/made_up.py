"""Which made-up entries do the tests of the board use? Documents of the submission schema, drawn from a seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leaderboard.entries import submission
from leaderboard.entries.submission import Entry, digest_of, entry_of, write_document

TASKS = {"FrozenLake-quick/v1": 20, "MiniGrid-Empty-8x8-quick/v1": 25}
"""checkpoints of each task of the suite `quick`"""
EPISODES = (100, 20)
"""evaluation episodes of its tasks"""
GAINS = {
    "advantage": 0.02,
    "advantage-error": -0.02,
    "dtv": 0.08,
    "dtv-lambda": 0.05,
    "dtv-loo": 0.15,
    "i-ppo": 0.1,
    "iif": 0.3,
    "random": -0.15,
    "random-matched": 0.0,
    "reward": -0.3,
    "td-error": 0.01,
    "iif:fraction=0.25": 0.25,
}
"""how much sooner, as a share of the run, each filter gets where the baseline gets"""


def make_document(
    seed: int = 0,
    *,
    gains: Mapping[str, float] = GAINS,
    tasks: Mapping[str, int] = TASKS,
    seeds: Sequence[int] = range(5),
    **changes: Any,
) -> dict[str, Any]:
    """A whole document: the baseline and the filters of `gains` on all tasks."""
    rng = np.random.default_rng(seed)
    specs = {"none": 0.0, **gains}
    document = {
        "schema": submission.SCHEMA,
        "name": f"Group {seed}",
        "authors": ["Ada Lovelace", "Grace Hopper"],
        "url": "https://example.org/paper",
        "suite": "quick",
        "created": "2026-01-31",
        "command": f"python -m harness.run --suite quick --filter {' '.join(gains)}",
        "device": "cpu",
        "status": "self-reported",
        "rerun": None,
        "provenance": {
            "code": {"commit": "0123456789abcdef", "dirty": False},
            "python": "3.11.2",
            "packages": {"numpy": "2.4.6", "torch": "2.13.0"},
            "platform": {"system": "Linux", "machine": "x86_64", "cpu": "Some CPU"},
            "device": "cpu",
            "threads": 1,
            "jobs": 2,
        },
        "tasks": {task: _task(count) for task, count in tasks.items()},
        "filters": {spec: _filter(spec, tasks) for spec in specs},
        "cells": [
            _cell(rng, task, spec, each, count=count, gain=gain, episodes=EPISODES[place % 2])
            for place, (task, count) in enumerate(tasks.items())
            for spec, gain in specs.items()
            for each in seeds
        ],
    } | changes
    return document | {"digest": digest_of(document)}


def make_entry(key: str = "group-0", seed: int = 0, **changes: Any) -> Entry:
    """That document as an entry."""
    return entry_of(make_document(seed, **changes), key)


def write_entries(folder: Path, count: int, **changes: Any) -> Path:
    """`count` different entries in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        write_document(folder / f"group-{number:02d}.json", make_document(number, **changes))
    return folder


def _task(count: int) -> dict[str, Any]:
    return {
        "agent": "ppo",
        "args": {"learning_rate": 0.005},
        "references": {"random": 0.0, "solved": 1.0},
        "steps": [2048 * k for k in range(1, count + 1)],
    }


def _filter(spec: str, tasks: Mapping[str, int]) -> dict[str, Any]:
    own = {"fields": {"fraction": 0.125} if spec != "none" else {}, "files": {}, "apply": "repack"}
    return {
        "class": f"filters.{spec.partition(':')[0].replace('-', '_')}:Filter",
        "sha256": f"{abs(len(spec)):064x}",
        "source": None,
        "tasks": dict.fromkeys(tasks, own),
    }


def _cell(
    rng: np.random.Generator, task: str, spec: str, seed: int, *, count: int, gain: float, episodes: int
) -> dict[str, Any]:
    progress = np.arange(1, count + 1) / count + gain + rng.normal(0, 0.06)
    chances = np.clip(1 / (1 + np.exp(-8 * (progress - 0.5))), 0.0, 1.0)
    returns = [(rng.random(episodes) < chance) * rng.uniform(0.9, 1.0, episodes).round(4) for chance in chances]
    pace = 1.0 if spec == "none" else 0.95 + 0.1 * rng.random()
    return {
        "task": task,
        "filter": spec,
        "seed": seed,
        "seconds": [round(pace * k, 3) for k in range(1, count + 1)],
        "returns": [each.tolist() for each in returns],
        "lengths": [[7] * episodes for _ in returns],
        "summary": None,
        "kept": [1.0 if spec == "none" else round(float(share), 6) for share in rng.uniform(0.85, 0.97, count)],
        "optimizer_steps": [300] * count,
        "phase_seconds": {
            "environment": 0.4 * pace * count,
            "filter": 0.0 if spec == "none" else 0.05 * pace * count,
            "update": 0.5 * pace * count,
            "evaluation": 3.0,
        },
        "corruption": {},
    }
