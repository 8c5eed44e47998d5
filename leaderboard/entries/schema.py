"""Is a parsed JSON value of the documented shape? Kinds of fields that check, and describe, themselves.

A kind knows every problem of a value at once. Values come from strangers: nothing here trusts a type, recurses into a
value of the wrong type, or shows more than the start of one.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

AT_MOST = 5
"""problems shown of one list or map; what is wrong with an array is usually wrong with all of it"""


@dataclass(frozen=True)
class Problem:
    """A value that is not of the documented shape."""

    field: str
    """the documented field, without numbers and keys: `cells.returns`"""
    where: str
    """the very place: `cells[3].returns[0][17]`"""
    message: str


@dataclass(frozen=True)
class Place:
    """Where in the document a value is."""

    field: str = ""
    where: str = ""

    def named(self, name: str) -> "Place":
        """The place of a documented field."""
        return Place(f"{self.field}.{name}".lstrip("."), f"{self.where}.{name}".lstrip("."))

    def numbered(self, index: int) -> "Place":
        """The place of an item of a list."""
        return Place(self.field, f"{self.where}[{index}]")

    def keyed(self, key: str) -> "Place":
        """The place of a value in a map."""
        return Place(self.field, f"{self.where}[{shown(key)}]")

    def problem(self, message: str) -> Problem:
        """A problem at this place."""
        return Problem(self.field, self.where or "the file", message)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a value has to be."""

    about: str = ""

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Everything that is wrong with the value."""
        raise NotImplementedError

    def all_fine(self, values: list[Any]) -> bool:
        """A quick look at many values: True if none has a problem, False if `problems` has to look closer."""
        return False

    def describe(self) -> str:
        """The kind in words, as SCHEMA.md shows it."""
        raise NotImplementedError

    def children(self, name: str) -> list[tuple[str, "Kind"]]:
        """The kinds inside that deserve a line of their own in SCHEMA.md, with their full names."""
        return []


@dataclass(frozen=True, kw_only=True)
class Text(Kind):
    """A string of printable characters."""

    longest: int = 100
    pattern: str = r".+"
    form: str = "printable text"
    """the pattern in words"""
    lines: bool = False
    """whether it may have line breaks and tabs"""

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Wrong type, length, characters or form."""
        if not isinstance(value, str):
            yield place.problem(f"has to be a text, got {shown(value)}")
        elif not 1 <= len(value) <= self.longest:
            yield place.problem(f"has to have 1 to {self.longest} characters, got {len(value)}")
        elif not self._printable(value):
            yield place.problem("holds a character that can't be printed, or a space at its start or end")
        elif not re.fullmatch(self.pattern, value, re.DOTALL):
            yield place.problem(f"has to be {self.form}, got {shown(value)}")

    def _printable(self, value: str) -> bool:
        if self.lines:
            return all(character.isprintable() or character in "\n\t\f" for character in value)
        return value.isprintable() and value == value.strip()

    def describe(self) -> str:
        """Form and length."""
        return f"{self.form}, up to {self.longest} characters"


@dataclass(frozen=True, kw_only=True)
class Number(Kind):
    """A finite number."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Wrong type or out of range."""
        kinds: tuple[type, ...] = (int,) if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            yield place.problem(f"has to be {self._noun}, got {shown(value)}")
        elif not self._inside(value):
            yield place.problem(f"has to lie in [{self.low:g}, {self.high:g}], got {shown(value)}")

    def _inside(self, value: Any) -> bool:
        return bool(self.low <= value <= self.high)  # NaN is not

    def all_fine(self, values: list[Any]) -> bool:
        """By type and extremes: most of a submission are long arrays of numbers."""
        if not set(map(type, values)) <= ({int} if self.whole else {int, float}):
            return False
        numbers: list[float] = values
        return not numbers or (self.low <= min(numbers) and max(numbers) <= self.high)

    @property
    def _noun(self) -> str:
        return "a whole number" if self.whole else "a number"

    def describe(self) -> str:
        """Type and range."""
        return f"{self._noun} in [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, kw_only=True)
class Choice(Kind):
    """One of a few texts."""

    of: tuple[str, ...]

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """None of them."""
        if not isinstance(value, str) or value not in self.of:
            yield place.problem(f"has to be {self.describe()}, got {shown(value)}")

    def describe(self) -> str:
        """The texts."""
        return " or ".join(f'"{text}"' for text in self.of)


@dataclass(frozen=True, kw_only=True)
class Flag(Kind):
    """true or false."""

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Neither."""
        if not isinstance(value, bool):
            yield place.problem(f"has to be true or false, got {shown(value)}")

    def describe(self) -> str:
        """The two values."""
        return "true or false"


@dataclass(frozen=True, kw_only=True)
class Maybe(Kind):
    """A value, or null."""

    of: Kind

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Those of a value that is not null."""
        if value is not None:
            yield from self.of.problems(value, place)

    def describe(self) -> str:
        """The kind, and null."""
        return f"{self.of.describe()}; or null"

    def children(self, name: str) -> list[tuple[str, Kind]]:
        """Those of the value."""
        return self.of.children(name)


@dataclass(frozen=True, kw_only=True)
class Array(Kind):
    """A list whose items are all of one kind."""

    of: Kind
    shortest: int = 1
    longest: int

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Wrong type or length, and the first problems of the items."""
        if not isinstance(value, list):
            yield place.problem(f"has to be a list, got {shown(value)}")
        elif not self.shortest <= len(value) <= self.longest:
            yield place.problem(f"has to have {self.shortest} to {self.longest} items, got {len(value)}")
        elif not self.of.all_fine(value):
            found = (p for i, item in enumerate(value) for p in self.of.problems(item, place.numbered(i)))
            yield from _first(found, place)

    def describe(self) -> str:
        """Length and items."""
        return f"list of {self.shortest} to {self.longest:,}: {self.of.describe()}"

    def children(self, name: str) -> list[tuple[str, Kind]]:
        """Those of an item."""
        return self.of.children(f"{name}[]")


@dataclass(frozen=True, kw_only=True)
class Map(Kind):
    """An object whose keys are free and whose values are all of one kind."""

    keys: Text
    of: Kind
    fewest: int = 0
    most: int

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Wrong type or size, and the first problems of keys and values."""
        if not isinstance(value, dict):
            yield place.problem(f"has to be an object, got {shown(value)}")
        elif not self.fewest <= len(value) <= self.most:
            yield place.problem(f"has to have {self.fewest} to {self.most} keys, got {len(value)}")
        else:
            yield from _first(self._inner(value, place), place)

    def _inner(self, value: Mapping[str, Any], place: Place) -> Iterator[Problem]:
        for key, item in value.items():
            for problem in self.keys.problems(key, place.keyed(key)):
                yield Problem(problem.field, problem.where, f"is a key that {problem.message}")
            yield from self.of.problems(item, place.keyed(key))

    def describe(self) -> str:
        """Keys and values."""
        return f"object of {self.fewest} to {self.most}: {self.keys.form} → {self.of.describe()}"

    def children(self, name: str) -> list[tuple[str, Kind]]:
        """Those of a value."""
        return self.of.children(f"{name}.*")


@dataclass(frozen=True, kw_only=True)
class Record(Kind):
    """An object with exactly these fields."""

    fields: Mapping[str, Kind]

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Wrong type, fields that are missing or unknown, and what is wrong inside."""
        if not isinstance(value, dict):
            yield place.problem(f"has to be an object, got {shown(value)}")
            return
        for name in self.fields.keys() - value.keys():
            yield place.named(name).problem("is missing")
        yield from _first(
            (place.keyed(key).problem("is no documented field") for key in value.keys() - self.fields), place
        )
        for name, kind in self.fields.items():
            if name in value:
                yield from kind.problems(value[name], place.named(name))

    def describe(self) -> str:
        """Its nature; the fields have lines of their own."""
        return "object"

    def children(self, name: str) -> list[tuple[str, Kind]]:
        """The fields, each followed by those inside it."""
        named = [(f"{name}.{own}".lstrip("."), kind) for own, kind in self.fields.items()]
        return [line for own, kind in named for line in [(own, kind), *kind.children(own)]]


@dataclass(frozen=True, kw_only=True)
class Setting(Kind):
    """What an agent's or a filter's field may hold: a scalar, null, or a list or an object of such."""

    depth: int = 2

    def problems(self, value: Any, place: Place) -> Iterator[Problem]:
        """Long or unprintable texts, numbers that are not finite, and too much of anything."""
        kind: Kind
        if value is None or value == "" or isinstance(value, bool):
            return
        if isinstance(value, str):
            kind = Text(longest=200)
        elif isinstance(value, int | float):
            kind = Number(low=-1e18, high=1e18)
        elif self.depth == 0:
            yield place.problem("is nested too deep")
            return
        elif isinstance(value, list):
            kind = Array(of=Setting(depth=self.depth - 1), shortest=0, longest=50)
        else:
            kind = Map(keys=Text(), of=Setting(depth=self.depth - 1), most=50)
        yield from kind.problems(value, place)

    def describe(self) -> str:
        """The values it takes."""
        return "scalar, null, or a list or an object of such"


def _first(problems: Iterator[Problem], place: Place) -> Iterator[Problem]:
    """At most AT_MOST of them, and one more that says that there are others."""
    for number, problem in enumerate(problems):
        if number == AT_MOST:
            yield place.problem("has more problems of this sort")
            return
        yield problem


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
