"""What does a submission of schema filtergym-submission/2 hold? Schema 1, with two differences.

A run may sum up its evaluations (mean and spread of each checkpoint, all episodes of the last one) instead of listing
every episode, which keeps long protocols small. And a task's id may name any variation. Accepted entries stay as they
are, so this file is frozen, too.
"""

from leaderboard.entries import schema_v1
from leaderboard.entries.schema import Array, Choice, Map, Maybe, Number, Record, Text

NUMBER = "filtergym-submission/2"


def task(about: str) -> Text:
    """A task's id: name, version, and what was varied."""
    pattern = r"[A-Za-z0-9][A-Za-z0-9.-]*/v[1-9][0-9]{0,3}(@[a-z][a-z0-9-]*(\.[0-9]+)?(e-?[0-9]+)?){0,5}"
    return Text(longest=120, pattern=pattern, form="a task's id with its version", about=about)


def episodes(of: Number, about: str) -> Array:
    """One number an episode."""
    return Array(of=of, longest=schema_v1.MAX_EPISODES, about=about)


RETURN = Number(low=-1e9, high=1e9)
LENGTH = Number(low=1, high=1e9, whole=True)

SUMMARY = Record(
    fields={
        "means": Array(of=RETURN, longest=schema_v1.MAX_CHECKPOINTS, about="[K] mean return of each checkpoint"),
        "spreads": Array(
            of=Number(low=0, high=2e9),
            longest=schema_v1.MAX_CHECKPOINTS,
            about="[K] standard deviation of the returns of each checkpoint (of the episodes, not of their mean)",
        ),
        "episodes": Number(low=1, high=schema_v1.MAX_EPISODES, whole=True, about="E, episodes a checkpoint"),
        "last_returns": episodes(RETURN, "[E] return of every episode of the last checkpoint"),
        "last_lengths": episodes(LENGTH, "[E] steps of every episode of the last checkpoint"),
    },
)

CELL = Record(
    fields=dict(schema_v1.CELL.fields)
    | {
        "task": task("one of `tasks`"),
        "seed": Number(low=0, high=2**31 - 1, whole=True, about="one of the suite's seeds in a valid submission"),
        "returns": Maybe(
            of=schema_v1.CELL.fields["returns"],
            about="[K][E] return of every evaluation episode; null where `summary` sums them up",
        ),
        "lengths": Maybe(
            of=schema_v1.CELL.fields["lengths"],
            about="[K][E] steps of every evaluation episode; null where `summary` sums them up",
        ),
        "summary": Maybe(of=SUMMARY, about="the evaluations summed up; null where `returns` and `lengths` hold all"),
    }
)

FILTER = Record(
    fields=dict(schema_v1.FILTER.fields)
    | {
        "tasks": Map(
            keys=task(""), of=schema_v1.SETTING, fewest=1, most=40, about="by task: what the filter was set to"
        )
    }
)

RERUN = Record(
    fields=dict(schema_v1.RERUN.fields)
    | {
        "cells": Array(
            of=Record(
                fields={
                    "task": task("task of a run"),
                    "filter": schema_v1.spec("its filter"),
                    "seed": schema_v1.seed(),
                    "verdict": Choice(of=("identical", "consistent"), about="as `leaderboard.rerun` defines them"),
                }
            ),
            longest=1000,
            about="the runs that were run again",
        ),
    }
)

SCHEMA = Record(
    fields=dict(schema_v1.SCHEMA.fields)
    | {
        "schema": Choice(of=(NUMBER,), about="which schema the file follows"),
        "rerun": Maybe(of=RERUN, about="what came out then; null while self-reported"),
        "tasks": Map(keys=task(""), of=schema_v1.TASK, fewest=1, most=40, about="by task: what all of its runs share"),
        "filters": Map(
            keys=schema_v1.spec(""), of=FILTER, fewest=1, most=100, about="by spec: the filters, `none` among them"
        ),
        "cells": Array(of=CELL, longest=20_000, about="one run each: a filter on a task with a seed"),
    }
)
