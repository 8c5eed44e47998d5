"""Malformed submissions, made from a good one: which clause has to refuse each?"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from leaderboard.entries.schema import Array, Flag, Kind, Map, Maybe, Number, Record, Setting, Text
from leaderboard.entries.schema_v2 import SCHEMA
from leaderboard.entries.submission import digest_of, to_text

Json = dict[str, Any]
PERSONAL = ("name", "authors", "url", "created", "command")
ELSEWHERE = {"references": "settings", "returns": "returns", "source": "filters"}
"""the clause that knows better where garbage is of the right kind"""
LAKE, GRID = "smoke-FrozenLake/v1", "smoke-MiniGrid/v1"
HOSTILE = "import os\nos.system('touch /tmp/filtergym-was-here')\n"


@dataclass(frozen=True)
class Mutation:
    """A file, and the clause that has to refuse it."""

    name: str
    clause: str
    raw: bytes
    filename: str = "mutant.json"


def mutations(good: Json) -> Iterator[Mutation]:
    """All of them; `good` is a sound submission of the smoke suite with `none` and `iif`."""
    yield from of_bytes(good)
    yield from of_types(good)
    yield from of_fields(good)
    yield from of_names(good)
    yield from of_many_places(good)
    for name, (clause, change) in CHANGES.items():
        mutant = copy.deepcopy(good)
        change(mutant)
        yield Mutation(f"{name}, old digest", clause if clause in ("schema", "status") else "digest", text(mutant))
        yield Mutation(f"{name}, digest made again", clause, forged(mutant))
    for name, change in POSSIBLE.items():
        mutant = copy.deepcopy(good)
        change(mutant)
        yield Mutation(name, "digest", text(mutant))


def text(document: Json) -> bytes:
    return json.dumps(document).encode()


def forged(document: Json) -> bytes:
    """With a digest that fits: whoever forges a number can hash it as well."""
    try:
        return text(document | {"digest": digest_of(document)})
    except ValueError:
        return text(document)


def of_bytes(good: Json) -> Iterator[Mutation]:
    """What is no strict JSON, or too much of it."""
    whole = to_text(good)
    raw = whole.encode()
    first = whole.index('"seconds": [') + len('"seconds": [')

    def with_number(number: str) -> bytes:
        return (whole[:first] + number + "," + whole[first:]).encode()

    cases = {
        "empty": b"",
        "a space": b" ",
        "zeros": b"\0" * 1000,
        "binary": bytes(range(256)) * 10,
        "UTF-16": whole.encode("utf-16"),
        "a byte-order mark": b"\xef\xbb\xbf" + raw,
        "Latin-1": whole.replace("A. Author", "Ä").encode("latin-1"),
        "a comment": b"// hello\n" + raw,
        "two documents": raw + raw,
        "YAML": b"name: x\nauthors: [a]\n",
        "Python": repr(good).encode(),
        "a pickle": b"cos\nsystem\n(S'touch pwned'\ntR.",
        "NaN": with_number("NaN"),
        "Infinity": with_number("Infinity"),
        "minus Infinity": with_number("-Infinity"),
        "a float that overflows": with_number("1e999"),
        "a float of 10,000 digits": with_number("0." + "1" * 10_000),
        "an integer of 30 digits": with_number("1" * 30),
        "an integer of 100,000 digits": with_number("1" * 100_000),
        "a key twice": raw.replace(b'"suite":', b'"suite": "quick", "suite":'),
        "100,000 keys, one twice": b"{" + b",".join(b'"%d":0' % (i % 99_999) for i in range(100_000)) + b"}",
        "brackets": b"[" * 200_000,
        "braces": b'{"a":' * 200_000,
        "nested lists": b"[" * 100_000 + b"]" * 100_000,
        "9 MiB of spaces": raw + b" " * (9 << 20),
        "9 MiB of name": text(good | {"name": "x" * (9 << 20)}),
        "a string without an end": raw[:100] + b'"' + b'\\"' * 1_000_000,
    }
    for name, mutant in cases.items():
        yield Mutation(name, "file", mutant)
    for tenth in range(1, 10):
        yield Mutation(f"the first {tenth} tenths", "file", raw[: len(raw) * tenth // 10])
    for name, value in {"a list": [good], "a text": "x", "a number": 1, "null": None, "true": True}.items():
        yield Mutation(f"{name} at the top", "schema", json.dumps(value).encode())


def places(kind: Kind, value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Kind]]:
    """The way to one value of every documented field, with its kind."""
    yield way, kind
    if isinstance(kind, Maybe):
        kind = kind.of
    if value is None:
        return
    if isinstance(kind, Record):
        for name, inner in kind.fields.items():
            yield from places(inner, value[name], (*way, name))
    elif isinstance(kind, Map) and value:
        key = sorted(value)[0]
        yield from places(kind.of, value[key], (*way, key))
    elif isinstance(kind, Array) and value:
        yield from places(kind.of, value[-1], (*way, len(value) - 1))


GARBAGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e300,
    "",
    "\0",
    "x" * 30_000,
    "<script>alert(1)</script>",
    [],
    [[[[[]]]]],
    {},
    {"__proto__": {"a": [None]}},
)


def of_types(good: Json) -> Iterator[Mutation]:
    """Garbage of every type in the place of a value of every documented field."""
    for way, kind in places(SCHEMA, good):
        if not way or isinstance(kind, Setting):
            continue
        for number, garbage in enumerate(GARBAGE):
            clause = "identity" if way[0] in PERSONAL else "schema"
            if fits(kind, garbage):
                clause = next((ELSEWHERE[step] for step in reversed(way) if step in ELSEWHERE), "")
                clause = "checkpoints" if garbage is None and way[-1] in ("returns", "lengths") else clause
            if clause:
                mutant = copy.deepcopy(good)
                put(mutant, way, garbage)
                if mutant == good:
                    continue
                raw = text(mutant) if way == ("digest",) else forged(mutant)
                yield Mutation(f"garbage {number} at {way}", clause, raw)


def of_many_places(good: Json) -> Iterator[Mutation]:
    """Only some of the fields, and garbage in several places at once: no clause may count on what another checks."""
    for name, value in good.items():
        yield Mutation(f"only {name}", "schema", text({name: value}))
        yield Mutation(f"only schema and {name}", "schema", text({"schema": good["schema"], name: value}))
    yield Mutation("an unknown schema and nothing else", "schema", text({"schema": "filtergym-submission/0"}))
    ways = [way for way, kind in places(SCHEMA, good) if way]
    rng = random.Random(0)
    for number in range(300):
        mutant = copy.deepcopy(good)
        put(mutant, ("provenance", "threads"), "many")
        for way in sorted(rng.sample(ways, 4), key=len, reverse=True):
            put(mutant, way, rng.choice(GARBAGE))
        yield Mutation(f"garbage in many places, {number}", "schema", text(mutant))


def fits(kind: Kind, value: Any) -> bool:
    """Whether garbage happens to be of the right kind; what it says is another clause's."""
    if isinstance(kind, Maybe):
        return value is None or fits(kind.of, value)
    if isinstance(kind, Map):
        return value == {} and kind.fewest == 0
    if isinstance(kind, Text):
        return kind.lines and value in GARBAGE[6:8]
    if isinstance(kind, Number):
        return value is GARBAGE[2] and kind.low <= -1
    return isinstance(kind, Flag) and value is True


def put(document: Any, way: tuple[Any, ...], value: Any) -> None:
    for step in way[:-1]:
        document = document[step]
    document[way[-1]] = value


def of_fields(good: Json) -> Iterator[Mutation]:
    """Every documented field left out, and one added to every object."""
    for way, kind in places(SCHEMA, good):
        if isinstance(way[-1] if way else None, str) and is_field(way):
            mutant = copy.deepcopy(good)
            owner = mutant
            for step in way[:-1]:
                owner = owner[step]
            del owner[way[-1]]
            clause = "identity" if way[0] in PERSONAL else "schema"
            raw = text(mutant) if way == ("digest",) else forged(mutant)
            yield Mutation(f"without {way}", clause, raw)
        if isinstance(kind, Record):
            mutant = copy.deepcopy(good)
            owner = mutant
            for step in way:
                owner = owner[step]
            owner["../../evil"] = {"x": [1]}
            yield Mutation(f"one more field in {way}", "schema", forged(mutant))


def is_field(way: tuple[Any, ...]) -> bool:
    """Whether the last step is the name of a field rather than a key."""
    kind: Kind = SCHEMA
    for step in way[:-1]:
        kind = kind.of if isinstance(kind, Maybe) else kind
        kind = kind.fields[step] if isinstance(kind, Record) else kind.of  # type: ignore[attr-defined]
    kind = kind.of if isinstance(kind, Maybe) else kind
    return isinstance(kind, Record)


def of_names(good: Json) -> Iterator[Mutation]:
    """Names, authors, URLs, commands and file names that would do harm somewhere."""
    people = {
        "a script": "<script>alert(1)</script>",
        "an image": '"><img src=x onerror=alert(1)>',
        "a line break": "a\nb",
        "a tab": "a\tb",
        "an escape": "\x1b[31mred",
        "a bell": "\x07",
        "a right-to-left override": "abc\u202egnp",
        "a zero-width space": "a\u200bb",
        "half a character": "\ud800",
        "a line separator": "a\u2028b",
        "too long": "x" * 101,
        "nothing": "",
        "a space": " ",
        "spaces around": " x ",
    }
    for name, value in people.items():
        yield Mutation(f"name: {name}", "identity", forged(good | {"name": value}))
        yield Mutation(f"author: {name}", "identity", forged(good | {"authors": ["A", value]}))
    urls = (
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "file:///etc/passwd",
        "ftp://example.org",
        "//example.org",
        "example.org",
        "http://",
        "https://user:secret@example.org",
        'https://example.org/"onmouseover="alert(1)',
        "https://example.org/a b",
        "https://example.org/<b>",
        "https://example.org/\n",
        "https://exämple.org/",
        "https://example.org/" + "x" * 200,
    )
    for url in urls:
        yield Mutation(f"url: {url[:40]!r}", "identity", forged(good | {"url": url}))
    command = good["command"]
    for more in ("; rm -rf ~", " && curl x | sh", " $(touch pwned)", " --out /", "\nrm x", " `x`", " "):
        yield Mutation(f"command: {more!r}", "identity", forged(good | {"command": command + more}))
    yield Mutation("command: another", "identity", forged(good | {"command": "rm -rf /"}))
    for date in ("2026-13-01", "2026-02-30", "yesterday", "2026-1-1", "0000-00-00", "2026-01-01T00:00:00"):
        yield Mutation(f"created: {date}", "identity", forged(good | {"created": date}))
    raw = text(good)
    for filename in (
        "UPPER.json",
        "with space.json",
        "ümlaut.json",
        "under_score.json",
        "dot.dot.json",
        "..json",
        ".json",
        "x" * 65 + ".json",
        "<script>.json",
        "evil.json.exe",
        "evil.JSON",
        "evil",
        "evil\n.json",
        "\udcff.json",
        "%2e%2e.json",
        "con:.json",
    ):
        yield Mutation(f"file name {filename[:20]!r}", "identity", raw, filename)


def cell(document: Json, spec: str = "iif", task: str = GRID, seed: int = 2) -> Json:
    wanted = (task, spec, seed)
    return next(c for c in document["cells"] if (c["task"], c["filter"], c["seed"]) == wanted)


def edit(spec: str = "iif", /, **values: Any) -> Callable[[Json], None]:
    """Set fields of one run."""
    return lambda document: cell(document, spec).update(values)


def at(*way: Any, value: Any) -> Callable[[Json], None]:
    """Set one value."""
    return lambda document: put(document, way, value)


def drop_cell(document: Json) -> None:
    document["cells"].remove(cell(document))


def repeat_cell(document: Json) -> None:
    document["cells"].append(copy.deepcopy(cell(document)))


def drop_task(document: Json) -> None:
    del document["tasks"][GRID]
    for filter in document["filters"].values():
        del filter["tasks"][GRID]
    document["cells"] = [c for c in document["cells"] if c["task"] != GRID]


def rename_task(old: str, new: str) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        document["tasks"][new] = document["tasks"].pop(old)
        for filter in document["filters"].values():
            filter["tasks"][new] = filter["tasks"].pop(old)
        for c in document["cells"]:
            c["task"] = new if c["task"] == old else c["task"]

    return change


def add_task(document: Json) -> None:
    document["tasks"]["CartPole/v2"] = copy.deepcopy(document["tasks"][LAKE])


def swap_tasks(document: Json) -> None:
    for c in document["cells"]:
        c["task"] = LAKE if c["task"] == GRID else GRID


def swap_settings(document: Json) -> None:
    tasks = document["tasks"]
    tasks[LAKE], tasks[GRID] = tasks[GRID], tasks[LAKE]


def rename_filter(old: str, new: str) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        document["filters"][new] = document["filters"].pop(old)
        for c in document["cells"]:
            c["filter"] = new if c["filter"] == old else c["filter"]

    return change


def drop_filter(spec: str) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        del document["filters"][spec]
        document["cells"] = [c for c in document["cells"] if c["filter"] != spec]

    return change


def both(*changes: Callable[[Json], None]) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        for one in changes:
            one(document)

    return change


def rerun_record(document: Json, **values: Any) -> None:
    again = [{"task": GRID, "filter": "iif", "seed": 0, "verdict": "identical"}]
    record = {"date": "2026-01-01", "digest": document["digest"], "verdict": "identical", "cells": again}
    document["rerun"] = record | {"provenance": document["provenance"]} | values
    document["status"] = "re-run"


def from_outside(spec: str, class_path: str, *, sha256: str | None = None, source: str | None = HOSTILE) -> Any:
    own = {"class": class_path, "source": source} | ({"sha256": sha256} if sha256 else {})
    return both(rename_filter("iif", spec), lambda document: document["filters"][spec].update(own))


CHANGES: dict[str, tuple[str, Callable[[Json], None]]] = {
    "an unknown schema": ("schema", at("schema", value="filtergym-submission/99")),
    "a schema of another project": ("schema", at("schema", value="../../etc/passwd")),
    "a missing run": ("runs", drop_cell),
    "a run twice": ("runs", repeat_cell),
    "another seed": ("runs", edit(seed=5)),
    "the seed of another run": ("runs", edit(seed=3)),
    "a run of an unknown filter": ("runs", edit(filter="random")),
    "a run on an unknown task": ("runs", edit(task="CartPole/v2")),
    "a seed for all": ("runs", lambda d: [c.update(seed=0) for c in d["cells"]]),
    "runs swapped between tasks": ("kept", swap_tasks),
    "settings swapped between tasks": ("settings", swap_settings),
    "a missing task": ("suite", drop_task),
    "a task too many": ("suite", add_task),
    "a newer task": ("suite", rename_task(GRID, "smoke-MiniGrid/v2")),
    "a task of another suite": ("suite", rename_task(GRID, "MiniGrid-Empty-8x8/v3")),
    "another suite": ("suite", at("suite", value="quick")),
    "an unknown suite": ("suite", at("suite", value="none-such")),
    "no baseline": ("baseline", drop_filter("none")),
    "a baseline of another name": ("baseline", rename_filter("none", "None")),
    "only the baseline": ("baseline", drop_filter("iif")),
    "a baseline of another class": ("filters", at("filters", "none", "class", value="filters.iif:IIF")),
    "a built-in filter of another class": ("filters", at("filters", "iif", "class", value="os:system")),
    "a built-in filter with a source": ("filters", at("filters", "iif", "source", value=HOSTILE)),
    "a filter from outside without source": ("filters", from_outside("mine", "my.mine:Mine", source=None)),
    "a filter from outside with another source": ("filters", from_outside("mine", "my.mine:Mine", sha256="0" * 64)),
    "an import path to another class": ("filters", from_outside("my.mine:Mine", "os:system")),
    "a stranger among FilterGym's": ("filters", from_outside("mine", "filters.iif:Mine")),
    "a spec of another order": ("filters", rename_filter("iif", "iif:warmup=0,fraction=0.5")),
    "a spec of another fraction": ("filters", rename_filter("iif", "iif:fraction=0.9")),
    "a spec with an unknown field": ("filters", rename_filter("iif", "iif:evil=1")),
    "a spec that sets nothing": ("filters", rename_filter("iif", "iif:fraction")),
    "a filter inside a filter": ("filters", rename_filter("iif", "random-matched:of=os:system")),
    "another fraction": ("filters", at("filters", "iif", "tasks", GRID, "fields", "fraction", value=0.9)),
    "another type of fraction": ("filters", at("filters", "iif", "tasks", GRID, "fields", "fraction", value=True)),
    "a field more": ("filters", at("filters", "iif", "tasks", GRID, "fields", "evil", value=1)),
    "another way to apply": ("filters", at("filters", "iif", "tasks", GRID, "apply", value="mask")),
    "settings for one task": ("filters", lambda d: d["filters"]["iif"]["tasks"].pop(GRID)),
    "settings for a third task": (
        "filters",
        lambda d: d["filters"]["iif"]["tasks"].update({"CartPole/v2": d["filters"]["iif"]["tasks"][GRID]}),
    ),
    "another backend": ("settings", at("tasks", GRID, "args", "env_backend", value="envpool")),
    "another learning rate": ("settings", at("tasks", GRID, "args", "learning_rate", value=0.1)),
    "another environment": ("settings", at("tasks", GRID, "args", "env_id", value="CartPole-v1")),
    "a budget ten times as large": ("settings", at("tasks", GRID, "args", "total_steps", value=5120)),
    "fewer evaluation episodes": ("settings", at("tasks", GRID, "args", "eval_episodes", value=1)),
    "1 for true": ("settings", at("tasks", LAKE, "args", "anneal_lr", value=0)),
    "a setting left out": ("settings", lambda d: d["tasks"][GRID]["args"].pop("gamma")),
    "a setting more": ("settings", at("tasks", GRID, "args", "trick", value=1)),
    "a setting of another type": ("settings", at("tasks", GRID, "args", "hidden", value={"a": [1]})),
    "another agent": ("settings", at("tasks", GRID, "agent", value="ppo")),
    "an easier reference": ("settings", at("tasks", GRID, "references", "solved", value=0.5)),
    "another device": ("harness", at("device", value="cuda")),
    "hardware of another device": ("harness", at("provenance", "device", value="NVIDIA H200")),
    "a newer FilterGym": ("harness", at("provenance", "packages", "filtergym", value="99.0")),
    "no version of torch": ("harness", lambda d: d["provenance"]["packages"].pop("torch")),
    "no version of FilterGym": ("harness", lambda d: d["provenance"]["packages"].pop("filtergym")),
    "other steps": ("checkpoints", at("tasks", GRID, "steps", value=[256, 513])),
    "a step less": ("checkpoints", at("tasks", GRID, "steps", value=[512])),
    "steps that run backwards": ("checkpoints", at("tasks", GRID, "steps", value=[512, 256])),
    "one checkpoint of returns less": ("checkpoints", lambda d: cell(d)["returns"].pop()),
    "one checkpoint of seconds more": ("checkpoints", lambda d: cell(d)["seconds"].append(1e6)),
    "one episode less": ("checkpoints", lambda d: cell(d)["returns"][1].pop()),
    "one episode more": ("checkpoints", lambda d: cell(d)["returns"][0].append(0)),
    "one length less": ("checkpoints", lambda d: cell(d)["lengths"][1].pop()),
    "only the best episodes": (
        "checkpoints",
        lambda d: [
            c.update(returns=[sorted(e)[-2:] for e in c["returns"]]) for c in d["cells"] if c["filter"] == "iif"
        ],
    ),
    "one round less": ("checkpoints", lambda d: cell(d)["kept"].pop()),
    "a return above the range": ("returns", lambda d: cell(d)["returns"][1].__setitem__(0, 1.01)),
    "a return far above the range": ("returns", lambda d: cell(d)["returns"][1].__setitem__(3, 1e8)),
    "a return below the range": ("returns", lambda d: cell(d)["returns"][0].__setitem__(0, -0.5)),
    "returns in per cent": ("returns", edit(returns=[[50, 60, 70, 80], [90, 95, 99, 100]])),
    "an episode without a step": ("schema", lambda d: cell(d)["lengths"][1].__setitem__(0, 0)),
    "half a step": ("schema", lambda d: cell(d)["lengths"][1].__setitem__(0, 1.5)),
    "a clock that runs backwards": ("clocks", lambda d: cell(d)["seconds"].reverse()),
    "a clock that stands at 0": ("clocks", lambda d: cell(d)["seconds"].__setitem__(0, 0)),
    "a clock twice as fast": ("clocks", lambda d: cell(d).update(seconds=[s / 2 for s in cell(d)["seconds"]])),
    "a phase left out": ("clocks", lambda d: cell(d)["phase_seconds"].pop("filter")),
    "a phase more": ("clocks", lambda d: cell(d)["phase_seconds"].update(coffee=1)),
    "a phase of no time": (
        "clocks",
        lambda d: cell(d)["phase_seconds"].update(dict.fromkeys(cell(d)["phase_seconds"], 0)),
    ),
    "a negative phase": ("schema", lambda d: cell(d)["phase_seconds"].update(update=-1)),
    "a baseline that drops records": ("kept", edit("none", kept=[1, 0.5])),
    "more than everything kept": ("schema", edit(kept=[1, 1.5])),
    "less than nothing kept": ("schema", edit(kept=[-0.1, 1])),
    "no share of the records": ("kept", edit(kept=[0.123456, 1])),
    "an optimizer step more": ("kept", lambda d: cell(d)["optimizer_steps"].__setitem__(0, 9)),
    "a million optimizer steps": ("kept", lambda d: cell(d)["optimizer_steps"].__setitem__(0, 10**6)),
    "half an optimizer step": ("schema", lambda d: cell(d)["optimizer_steps"].__setitem__(0, 0.5)),
    "a path in a field": ("paths", at("filters", "iif", "tasks", GRID, "fields", "reference", value="/etc/passwd")),
    "a home in a field": ("paths", at("filters", "iif", "tasks", GRID, "fields", "reference", value="~/x.ref")),
    "a drive in a field": ("paths", at("filters", "iif", "tasks", GRID, "fields", "reference", value="C:\\x.ref")),
    "a share in a field": ("paths", at("filters", "iif", "tasks", GRID, "fields", "reference", value="\\\\host\\x")),
    "a way up in a field": ("paths", at("filters", "iif", "tasks", GRID, "fields", "reference", value="../../x")),
    "a path in a setting": ("paths", at("tasks", GRID, "args", "out", value="/home/me/runs")),
    "a path in a spec": ("paths", rename_filter("iif", "iif:reference=/etc/passwd")),
    "a way up in a spec": ("schema", rename_filter("iif", "iif:reference=../x")),
    "a script in a spec": ("schema", rename_filter("iif", "<script>alert(1)</script>")),
    "a line break in a spec": ("schema", rename_filter("iif", "iif\nx")),
    "a path as a task": ("schema", rename_task(GRID, "../../etc/v1")),
    "a script as a task": ("schema", rename_task(GRID, "<script>/v1")),
    "a script in the hardware": ("schema", at("provenance", "platform", "cpu", value="<img src=x>")),
    "a script in a version": ("schema", at("provenance", "packages", "torch", value="2<script>")),
    "a machine's name": ("schema", at("provenance", "hostname", value="alice-laptop")),
    "re-run without a record": ("status", at("status", value="re-run")),
    "a record without re-run": ("status", both(rerun_record, at("status", value="self-reported"))),
    "a record of other content": ("status", lambda d: rerun_record(d, digest="0" * 64)),
    "a record of no date": ("status", lambda d: rerun_record(d, date="2026-99-99")),
    "a record of no run": (
        "status",
        lambda d: rerun_record(d, cells=[{"task": GRID, "filter": "dtv", "seed": 0, "verdict": "identical"}]),
    ),
    "a record that is better than its runs": (
        "status",
        lambda d: rerun_record(d, cells=[{"task": GRID, "filter": "iif", "seed": 0, "verdict": "consistent"}]),
    ),
    "a status of their own": ("schema", at("status", value="verified")),
}
"""by name: the clause that has to refuse it even if the digest fits, and the change"""

POSSIBLE: dict[str, Callable[[Json], None]] = {
    "an edited return": lambda d: cell(d)["returns"][1].__setitem__(0, 0.9),
    "an edited return of the baseline": lambda d: cell(d, "none")["returns"][1].__setitem__(0, 0.5),
    "an edited length": lambda d: cell(d)["lengths"][1].__setitem__(0, 77),
    "an edited clock": lambda d: cell(d)["seconds"].__setitem__(0, cell(d)["seconds"][0] / 2),
    "another name": at("name", value="Somebody else"),
    "another author": at("authors", value=["Somebody else"]),
    "another processor": at("provenance", "platform", "cpu", value="Fast One"),
}
"""changes that could be true: only the digest knows better"""
