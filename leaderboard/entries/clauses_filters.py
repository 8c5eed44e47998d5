"""Are the filters of a submission what they say? The clause `filters`, as in `leaderboard.entries.clauses`.

No filter is made: that would import what a stranger's text names. Specs are parsed, and compared with the classes of
FilterGym alone.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_type_hints

from filters.errors import UsageError
from leaderboard.entries.catalogue import TaskFacts
from leaderboard.entries.clauses import Claim
from leaderboard.entries.schema import shown
from leaderboard.entries.submission import Json

if TYPE_CHECKING:
    from filters.api import Filter
    from filters.registry import Spec


def filters(claim: Claim) -> Iterator[str]:
    """Every filter says which class it is, from which source, and with which fields on which task."""
    from filters.registry import built_in, parse

    ours, tasks = built_in(), claim.document["tasks"].keys()
    for text, filter in claim.document["filters"].items():
        try:
            spec = parse(text)
        except UsageError as error:
            yield str(error)
            continue
        if str(spec) != text:
            yield f"{text}: harness.run writes it as {spec}"
        if filter["tasks"].keys() != tasks:
            odd = sorted(filter["tasks"].keys() ^ tasks)
            yield f"{text}: it has to have settings for the tasks of the submission alone, all of them; see {odd[0]}"
        cls = ours.get(spec.name)
        yield from (f"{text}: {problem}" for problem in _nested(spec, ours))
        yield from (f"{text}: {problem}" for problem in (_inside(filter, cls) if cls else _outside(spec, filter)))
        for name, task in claim.tasks.items():
            if name in filter["tasks"]:
                exact = cls is not None and _is_as_here(cls, filter)
                found = _settings(spec, filter["tasks"][name], task, cls if exact else None)
                yield from (f"{text}: on {name}, {problem}" for problem in found)


def _nested(spec: "Spec", ours: "dict[str, type[Filter]]") -> Iterator[str]:
    """A filter inside a filter is imported when the outer one is made, before anything can be known of it."""
    from filters.registry import parse

    for key, value in spec.settings:
        try:
            inner = parse(value.replace(";", ",")).name
        except UsageError:
            continue
        if inner not in ours and (":" in value or _takes_filter(ours.get(spec.name), key)):
            yield f"{key} may only name a filter of FilterGym, got {shown(value)}"


def _takes_filter(cls: "type[Filter] | None", key: str) -> bool:
    from filters.api import Filter

    kind = get_type_hints(cls).get(key) if cls else None
    return isinstance(kind, type) and issubclass(kind, Filter)


def _inside(filter: Json, cls: "type[Filter]") -> Iterator[str]:
    """A filter of FilterGym."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    if filter["class"] != path:
        yield f"FilterGym's filter of that name is {path}, but the class is {filter['class']}"
    if filter["source"] is not None:
        yield "it is a filter of FilterGym, so source has to be null"


def _outside(spec: "Spec", filter: Json) -> Iterator[str]:
    """A filter from outside."""
    from filters.registry import BUILT_IN, text_hash

    path, source = filter["class"], filter["source"]
    if path.partition(":")[0] in {f"filters.{module}" for module in BUILT_IN}:
        yield f"FilterGym has no filter of that name in {path}"
    if ":" in spec.name and spec.name != path:
        yield f"it names another class than {path}"
    if source is None:
        yield "it is no filter of FilterGym, so source has to hold the text of its file"
    elif text_hash(source) != filter["sha256"]:
        yield "the text in source has another SHA-256 than sha256 says"


def _is_as_here(cls: "type[Filter]", filter: Json) -> bool:
    """Whether the filter is of this version of FilterGym, so that its fields can be compared with the class's."""
    from filters.registry import source_of, text_hash

    return bool(text_hash(source_of(cls) or "") == filter["sha256"])


def _settings(spec: "Spec", setting: Json, task: TaskFacts, cls: "type[Filter] | None") -> Iterator[str]:
    """Fields are what spec, task and class say, as far as they are known; so is how selections are applied."""
    said, values = dict(spec.settings), setting["fields"]
    known: Json = {}
    if cls is not None:
        known = {field.name: field.default for field in fields(cls)} | dict(task.filter_defaults.get(spec.name, {}))
        if known.keys() != values.keys():
            yield f"fields has to have exactly {', '.join(known) or 'no key'}"
    expected = known | said
    for name in sorted(expected.keys() - values.keys() - known.keys()):
        yield f"fields lacks {name}, which the spec sets"
    for name in sorted(expected.keys() & values.keys()):
        if not _says(expected[name], values[name]):
            yield f"fields.{name} has to be {shown(expected[name])}, got {shown(values[name])}"
    apply: Any = task.apply or (cls.apply if cls else None)
    if isinstance(apply, str) and setting["apply"] != apply:  # a filter that wraps another has that one's
        yield f"apply has to be {apply}"


def _says(expected: Any, value: Any) -> bool:
    """Whether a field's value is what a spec's text or a default says; a filter in a field is not looked into."""
    if isinstance(value, dict):
        return True
    if isinstance(expected, str) and (value is None or isinstance(value, bool)):
        return expected.lower() == str(value).lower()
    if isinstance(expected, str) and isinstance(value, int | float):
        try:
            return bool(float(expected) == value)
        except ValueError:
            return False
    return isinstance(expected, bool) == isinstance(value, bool) and bool(expected == value)
