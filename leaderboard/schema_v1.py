"""What does a submission of schema filtergym-submission/1 hold?

Accepted entries stay as they are, so this file is frozen: a change means a new file, a new number, and a reader for
both.
"""

from leaderboard.schema import Array, Choice, Flag, Map, Maybe, Number, Record, Setting, Text

NUMBER = "filtergym-submission/1"

MAX_CHECKPOINTS = 2_000
MAX_EPISODES = 2_000
MAX_ROUNDS = 20_000
DAY = 86_400.0

SHA256 = Text(longest=64, pattern=r"[0-9a-f]{64}", form="a SHA-256 in hex")
TASK = Text(longest=80, pattern=r"[A-Za-z0-9][A-Za-z0-9.-]*/v[1-9][0-9]{0,3}", form="a task's id with its version")
SPEC = Text(
    longest=200,
    pattern=r"(?!.*\.\.)[A-Za-z][A-Za-z0-9_.,:;=+@/-]*",
    form="a filter spec (letters, digits and _ . , : ; = + @ / - without ..)",
)
PERSON = Text(pattern=r"[^<>]+", form="printable text without < and >")
WORD = Text(longest=60, pattern=r"[A-Za-z][A-Za-z0-9_.-]*", form="a name")
VERSION = Text(longest=60, pattern=r"[0-9][A-Za-z0-9_.+!-]*", form="a version")
HARDWARE = Text(longest=120, pattern=r"[^<>/\\]+", form="printable text without < > / \\")


def _pair(about: str) -> Record:
    number = Number(low=-1e9, high=1e9)
    return Record(about=about, fields={"random": number, "solved": number})


PROVENANCE = Record(
    about="under what all runs came about; no machine names, no paths",
    fields={
        "code": Record(
            about="the checkout that ran",
            fields={
                "commit": Maybe(
                    of=Text(longest=64, pattern=r"[0-9a-f]{7,64}", form="a commit in hex"),
                    about="null outside a checkout",
                ),
                "dirty": Maybe(of=Flag(), about="whether it had been edited"),
            },
        ),
        "python": Text(longest=40, pattern=r"[0-9][A-Za-z0-9_.+-]*", form="a version", about="of the interpreter"),
        "packages": Map(keys=WORD, of=VERSION, fewest=1, most=40, about="those that can change a result"),
        "platform": Record(
            about="operating system and processor",
            fields={"system": HARDWARE, "machine": HARDWARE, "cpu": HARDWARE},
        ),
        "device": Text(
            longest=120,
            pattern=r"[^<>/\\]+",
            form="printable text without < > / \\",
            about="`cpu`, or the model of the GPU",
        ),
        "threads": Number(low=1, high=4096, whole=True, about="threads of a run"),
        "jobs": Number(low=1, high=65536, whole=True, about="runs side by side"),
    },
)

TASKS = Record(
    about="by task: everything that all of its runs share",
    fields={
        "agent": WORD,
        "args": Map(
            keys=WORD, of=Setting(), fewest=1, most=100, about="every setting of the agent but seed and device"
        ),
        "references": _pair("returns that are 0 and 1 of normalised scores"),
        "steps": Array(
            of=Number(low=1, high=1e12, whole=True),
            longest=MAX_CHECKPOINTS,
            about="[K] environment steps before each checkpoint",
        ),
    },
)

FILTERS = Record(
    about="by spec: the filters, the baseline `none` among them",
    fields={
        "class": Text(
            longest=200,
            pattern=r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*",
            form="module:Class",
            about="where the filter's class is",
        ),
        "sha256": Text(
            longest=64, pattern=SHA256.pattern, form=SHA256.form, about="of the class's source file, line ends as \\n"
        ),
        "source": Maybe(
            of=Text(longest=200_000, lines=True, form="text of printable characters and line breaks"),
            about="that file itself; null for the filters of FilterGym",
        ),
        "tasks": Map(
            keys=TASK,
            of=Record(
                fields={
                    "fields": Map(keys=WORD, of=Setting(), most=50, about="the filter's hyperparameters on that task"),
                    "files": Map(keys=WORD, of=SHA256, most=20, about="SHA-256 of the files that they name"),
                    "apply": Choice(of=("repack", "mask"), about="how dropped records leave the minibatches"),
                }
            ),
            fewest=1,
            most=40,
            about="by task: what the filter was set to",
        ),
    },
)

SECONDS = Number(low=0, high=10_000 * DAY)
CELL = Record(
    about="one run each: (task, filter, seed)",
    fields={
        "task": TASK,
        "filter": SPEC,
        "seed": Number(low=0, high=2**31 - 1, whole=True),
        "seconds": Array(
            of=SECONDS, longest=MAX_CHECKPOINTS, about="[K] training seconds before each checkpoint, to the ms"
        ),
        "returns": Array(
            of=Array(of=Number(low=-1e9, high=1e9), longest=MAX_EPISODES),
            longest=MAX_CHECKPOINTS,
            about="[K][E] return of every evaluation episode, exact",
        ),
        "lengths": Array(
            of=Array(of=Number(low=1, high=1e9, whole=True), longest=MAX_EPISODES),
            longest=MAX_CHECKPOINTS,
            about="[K][E] steps of every evaluation episode",
        ),
        "kept": Array(
            of=Number(low=0, high=1),
            longest=MAX_ROUNDS,
            about="[R] share of each rollout that the update could use, to 1e-6",
        ),
        "optimizer_steps": Array(
            of=Number(low=0, high=1e9, whole=True), longest=MAX_ROUNDS, about="[R] minibatch updates of each round"
        ),
        "phase_seconds": Map(
            keys=WORD, of=SECONDS, fewest=1, most=20, about="seconds of the whole run by phase, to the ms"
        ),
    },
)

RERUN = Record(
    about="who ran cells again and what came out; null while self-reported",
    fields={
        "date": Text(longest=10, pattern=r"\d{4}-\d\d-\d\d", form="a date (YYYY-MM-DD)"),
        "digest": Text(longest=64, pattern=SHA256.pattern, form=SHA256.form, about="of the content that was run again"),
        "verdict": Choice(of=("identical", "consistent"), about="the weaker one of the cells"),
        "cells": Array(
            of=Record(
                fields={
                    "task": TASK,
                    "filter": SPEC,
                    "seed": Number(low=0, high=2**31 - 1, whole=True),
                    "verdict": Choice(of=("identical", "consistent")),
                }
            ),
            longest=1000,
            about="the runs that were run again",
        ),
        "provenance": PROVENANCE,
    },
)

SCHEMA = Record(
    fields={
        "schema": Choice(of=(NUMBER,), about="what this document describes"),
        "name": Text(pattern=PERSON.pattern, form=PERSON.form, about="what people read in the table"),
        "authors": Array(of=PERSON, longest=50, about="who made the runs"),
        "url": Maybe(
            of=Text(
                longest=200,
                pattern=r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9_.~!$&()*+,;=:@%/?#-]*)?",
                form="an http(s) URL without user name",
            ),
            about="a paper or a repository",
        ),
        "suite": Text(longest=40, pattern=r"[a-z0-9][a-z0-9-]*", form="the name of a suite"),
        "created": Text(
            longest=10, pattern=r"\d{4}-\d\d-\d\d", form="a date (YYYY-MM-DD)", about="when the file was made"
        ),
        "command": Text(
            longest=25_000,
            pattern=r"python -m harness\.run .+",
            form="a harness.run command",
            about="makes these runs again",
        ),
        "device": Choice(of=("cpu", "cuda"), about="where networks and updates lived"),
        "status": Choice(of=("self-reported", "re-run"), about="`re-run` once someone else ran cells of it again"),
        "rerun": Maybe(of=RERUN, about=RERUN.about),
        "digest": Text(
            longest=64,
            pattern=SHA256.pattern,
            form=SHA256.form,
            about="of everything but `status`, `rerun` and itself, as JSON with sorted keys and no spaces",
        ),
        "provenance": PROVENANCE,
        "tasks": Map(keys=TASK, of=TASKS, fewest=1, most=40, about=TASKS.about),
        "filters": Map(keys=SPEC, of=FILTERS, fewest=1, most=100, about=FILTERS.about),
        "cells": Array(of=CELL, longest=20_000, about=CELL.about),
    }
)
