"""What does a submission of schema filtergym-submission/1 hold?

Accepted entries stay as they are, so this file is frozen: a change means a new file, a new number, and a reader for
both.
"""

from leaderboard.entries.schema import Array, Choice, Flag, Map, Maybe, Number, Record, Setting, Text

NUMBER = "filtergym-submission/1"

MAX_CHECKPOINTS = 2_000
MAX_EPISODES = 2_000
MAX_ROUNDS = 20_000
LONGEST = 1e9
"""seconds; 31 years"""


def sha256(about: str) -> Text:
    return Text(longest=64, pattern=r"[0-9a-f]{64}", form="a SHA-256 in hex", about=about)


def date(about: str) -> Text:
    return Text(longest=10, pattern=r"\d{4}-\d\d-\d\d", form="a date (YYYY-MM-DD)", about=about)


def task(about: str) -> Text:
    pattern = r"[A-Za-z0-9][A-Za-z0-9.-]*/v[1-9][0-9]{0,3}(@corrupt-[a-z]+(-[a-z]+)*-[0-9][0-9.e-]{0,11})?"
    return Text(longest=80, pattern=pattern, form="a task's id with its version", about=about)


def spec(about: str) -> Text:
    form = "a filter spec (letters, digits and _ . , : ; = + @ / - without ..)"
    return Text(longest=200, pattern=r"(?!.*\.\.)[A-Za-z][A-Za-z0-9_.,:;=+@/-]*", form=form, about=about)


def words(about: str) -> Text:
    return Text(pattern=r"[^<>]+", form="printable text without < and >", about=about)


def word(about: str) -> Text:
    return Text(longest=60, pattern=r"[A-Za-z][A-Za-z0-9_.-]*", form="a name", about=about)


def version(about: str) -> Text:
    return Text(longest=60, pattern=r"[0-9][A-Za-z0-9_.+!-]*", form="a version", about=about)


def hardware(about: str) -> Text:
    return Text(longest=120, pattern=r"[^<>\\]+", form="printable text without < > \\", about=about)


def seed() -> Number:
    return Number(low=0, high=2**31 - 1, whole=True, about="0 to 4 in a valid submission")


def provenance(about: str) -> Record:
    return Record(
        about=about,
        fields={
            "code": Record(
                about="the checkout that ran",
                fields={
                    "commit": Maybe(
                        of=Text(longest=64, pattern=r"[0-9a-f]{7,64}", form="a commit in hex"),
                        about="null outside a checkout",
                    ),
                    "dirty": Maybe(of=Flag(), about="whether it had been edited; null outside a checkout"),
                },
            ),
            "python": version("of the interpreter"),
            "packages": Map(
                keys=word("a package"),
                of=version(""),
                fewest=1,
                most=40,
                about="versions of those that can change a result",
            ),
            "platform": Record(
                about="what the runs ran on",
                fields={
                    "system": hardware("operating system"),
                    "machine": hardware("instruction set"),
                    "cpu": hardware("model of the processor"),
                },
            ),
            "device": hardware("`cpu`, or the model of the GPU"),
            "threads": Number(low=1, high=4096, whole=True, about="threads of a run"),
            "jobs": Number(low=1, high=65536, whole=True, about="runs side by side"),
        },
    )


TASK = Record(
    fields={
        "agent": word("module in `algos` that trains on it"),
        "args": Map(
            keys=word(""), of=Setting(), fewest=1, most=100, about="every setting of the agent but seed and device"
        ),
        "references": Record(
            about="the fixed returns between which scores are normalised",
            fields={
                "random": Number(low=-1e9, high=1e9, about="of a random policy: the 0"),
                "solved": Number(low=-1e9, high=1e9, about="of a solved task: the 1"),
            },
        ),
        "steps": Array(
            of=Number(low=1, high=1e12, whole=True),
            longest=MAX_CHECKPOINTS,
            about="[K] environment steps before each checkpoint",
        ),
    },
)

SETTING = Record(
    fields={
        "fields": Map(keys=word(""), of=Setting(), most=50, about="the filter's hyperparameters on that task"),
        "files": Map(keys=word(""), of=sha256(""), most=20, about="SHA-256 of the files that the fields name"),
        "apply": Choice(of=("repack", "mask"), about="how dropped records leave the minibatches"),
    }
)

FILTER = Record(
    fields={
        "class": Text(
            longest=200,
            pattern=r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*",
            form="module:Class",
            about="where the filter's class is",
        ),
        "sha256": sha256("of the class's source file, line ends as \\n"),
        "source": Maybe(
            of=Text(longest=200_000, lines=True, form="text of printable characters and line breaks"),
            about="the text of that file; null for the filters of FilterGym",
        ),
        "tasks": Map(keys=task(""), of=SETTING, fewest=1, most=40, about="by task: what the filter was set to"),
    },
)

CELL = Record(
    fields={
        "task": task("one of `tasks`"),
        "filter": spec("one of `filters`"),
        "seed": seed(),
        "seconds": Array(
            of=Number(low=0, high=LONGEST),
            longest=MAX_CHECKPOINTS,
            about="[K] training seconds before each checkpoint",
        ),
        "returns": Array(
            of=Array(of=Number(low=-1e9, high=1e9), longest=MAX_EPISODES),
            longest=MAX_CHECKPOINTS,
            about="[K][E] return of every evaluation episode",
        ),
        "lengths": Array(
            of=Array(of=Number(low=1, high=1e9, whole=True), longest=MAX_EPISODES),
            longest=MAX_CHECKPOINTS,
            about="[K][E] steps of every evaluation episode",
        ),
        "kept": Array(
            of=Number(low=0, high=1), longest=MAX_ROUNDS, about="[R] share of each rollout that the update could use"
        ),
        "optimizer_steps": Array(
            of=Number(low=0, high=1e9, whole=True), longest=MAX_ROUNDS, about="[R] minibatch updates of each round"
        ),
        "phase_seconds": Map(
            keys=word(""),
            of=Number(low=0, high=LONGEST),
            fewest=1,
            most=20,
            about="seconds of the whole run, by phase: startup, environment, inference, filter, update, evaluation, "
            "logging",
        ),
        "corruption": Map(
            keys=word(""),
            of=Array(of=Maybe(of=Number(low=0, high=1), about=""), longest=MAX_ROUNDS),
            most=10,
            about="[R] how well corrupted records were found, by name (corrupted, auroc, average_precision, recall, "
            "precision; null where nothing can be said); empty where no record was made harmful",
        ),
    },
)

RERUN = Record(
    fields={
        "date": date("when the runs were run again"),
        "digest": sha256("of the content that was run again"),
        "verdict": Choice(of=("identical", "consistent"), about="the weaker one of the runs'"),
        "cells": Array(
            of=Record(
                fields={
                    "task": task("task of a run"),
                    "filter": spec("its filter"),
                    "seed": seed(),
                    "verdict": Choice(of=("identical", "consistent"), about="as `leaderboard.rerun` defines them"),
                }
            ),
            longest=1000,
            about="the runs that were run again",
        ),
        "provenance": provenance("under what they were run again"),
    },
)

URL = r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9_.~!$&()*+,;=:@%/?#-]*)?"

SCHEMA = Record(
    fields={
        "schema": Choice(of=(NUMBER,), about="which schema the file follows"),
        "name": words("what people read in the table"),
        "authors": Array(of=words(""), longest=50, about="who made the runs"),
        "url": Maybe(
            of=Text(longest=200, pattern=URL, form="an http(s) URL without user name"), about="a paper or a repository"
        ),
        "suite": Text(
            longest=40, pattern=r"[a-z0-9][a-z0-9-]*", form="the name of a suite", about="the suite that was run"
        ),
        "created": date("when the file was made"),
        "command": Text(
            longest=25_000,
            pattern=r"python -m harness\.run .+",
            form="a harness.run command",
            about="makes these runs again",
        ),
        "device": Choice(of=("cpu", "cuda"), about="where networks and updates lived"),
        "status": Choice(of=("self-reported", "re-run"), about="`re-run` once someone ran some of its runs again"),
        "rerun": Maybe(of=RERUN, about="what came out then; null while self-reported"),
        "digest": sha256("of everything but `status`, `rerun` and itself, as JSON with sorted keys and no spaces"),
        "provenance": provenance("under what all runs came about; no machine names, no paths"),
        "tasks": Map(keys=task(""), of=TASK, fewest=1, most=40, about="by task: what all of its runs share"),
        "filters": Map(keys=spec(""), of=FILTER, fewest=1, most=100, about="by spec: the filters, `none` among them"),
        "cells": Array(of=CELL, longest=20_000, about="one run each: a filter on a task with a seed"),
    }
)
