"""How is JSON read that was cut short, edited, or made to do harm?

Nothing here runs what it reads, follows a link, waits for a pipe, or takes in more than it has room for. Whatever is
wrong becomes a UsageError that names the file and the remedy.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from filters.errors import UsageError

Json = dict[str, Any]

OBJECT_BYTES = 8 * 2**20
"""largest file that holds one object"""
LINES_BYTES = 2**30
"""largest file of one object a line; 1,000 episodes after each of Pong's 9,766 rounds take a fifth of it"""
LINE_BYTES = 8 * 2**20
"""largest line: some 200,000 episodes"""
LARGEST = 2**63 - 1
"""largest whole number, which is also what arrays hold"""
MOST = 1e100
"""largest number: sums and squares of it stay finite"""


def damaged(file: Path, what: str) -> UsageError:
    """The error that says what is wrong with a file of a run directory."""
    return UsageError(f"{file} {what}; delete {file.parent} and run the same command again")


class Regular:
    """A regular file of bounded size, opened for reading; hashes what is read.

    Args:
        file: must be no link and no device or pipe, as none of these comes from a run.
        limit: most bytes that it may hold.

    Raises:
        UsageError: if it is missing, can't be read, is something else, or is too large.
    """

    def __init__(self, file: Path, limit: int) -> None:
        self._file, self._hash = file, hashlib.sha256()
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            if file.is_symlink():
                raise damaged(file, "is a link, which no run makes")
            self._stream = open(os.open(file, flags), "rb")  # noqa: SIM115  closed by `lines`
        except FileNotFoundError as error:
            raise damaged(file, "is missing") from error
        except (OSError, ValueError) as error:
            raise damaged(file, f"can't be read ({error})") from error
        found = os.fstat(self._stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            self._stream.close()
            what = f"holds more than {limit:,} bytes" if stat.S_ISREG(found.st_mode) else "is no file"
            raise damaged(file, what)

    def lines(self, limit: int) -> Iterator[bytes]:
        """The file's lines, each of at most `limit` bytes; closes the file."""
        with self._stream, self._readable():
            while line := self._stream.readline(limit + 1):
                if len(line) > limit:
                    raise damaged(self._file, f"has a line of more than {limit:,} bytes")
                self._hash.update(line)
                yield line

    def whole(self, limit: int) -> bytes:
        """The file's content, of at most `limit` bytes; closes the file."""
        with self._stream, self._readable():
            content = self._stream.read(limit + 1)
        if len(content) > limit:  # it grew since it was opened
            raise damaged(self._file, f"holds more than {limit:,} bytes")
        self._hash.update(content)
        return content

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise damaged(self._file, f"can't be read ({error})") from error

    @property
    def digest(self) -> str:
        """SHA-256 of what was read so far, in hexadecimal."""
        return self._hash.hexdigest()


def digest(file: Path) -> str:
    """SHA-256 of a file of a run directory; raises UsageError if it can't be read."""
    opened = Regular(file, LINES_BYTES)
    for _ in opened.lines(LINES_BYTES):
        pass
    return opened.digest


def parse(text: bytes, file: Path) -> Json:
    """One JSON object; raises UsageError for anything else."""
    try:
        parsed = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(file, "is truncated or not JSON") from error
    if not isinstance(parsed, dict):
        raise damaged(file, "does not hold a JSON object where one belongs")
    return parsed


def load_object(file: Path) -> Json:
    """The object in a file, whatever its schema; raises UsageError if the file is damaged."""
    return parse(Regular(file, OBJECT_BYTES).whole(OBJECT_BYTES), file)


def read_object(file: Path, *, schema: int, sha256: str | None = None) -> Json:
    """The object in a file.

    Args:
        file: holds one object.
        schema: that it must say it has.
        sha256: what the file must hash to; None if that is not known.

    Raises:
        UsageError: if the file is damaged.
    """
    opened = Regular(file, OBJECT_BYTES)
    parsed = parse(opened.whole(OBJECT_BYTES), file)
    if parsed.get("schema") != schema:
        raise damaged(file, f"has schema {str(parsed.get('schema'))[:50]}, but this version reads schema {schema}")
    check_digest(opened, file, sha256)
    return parsed


def read_lines(file: Path, *, sha256: str | None = None) -> Iterator[Json]:
    """The objects of a file that holds one a line; raises UsageError as `read_object`, and if there is none."""
    opened = Regular(file, LINES_BYTES)
    number = -1
    for number, line in enumerate(opened.lines(LINE_BYTES)):  # noqa: B007
        yield parse(line, file)
    if number < 0:
        raise damaged(file, "is empty")
    check_digest(opened, file, sha256)


def check_digest(opened: Regular, file: Path, sha256: str | None) -> None:
    """Raise UsageError if the file does not hash to what run.json says."""
    if sha256 is not None and opened.digest != sha256:
        raise damaged(file, "is not what the run wrote: it was edited or mixed up")


def field(record: Json, key: str, kind: type, file: Path) -> Any:
    """A value of that type; raises UsageError if there is none."""
    if key not in record:
        raise damaged(file, f"lacks {key!r}")
    value: Any = record[key]
    if not isinstance(value, kind) or (kind is int and not _is_whole(value)):
        raise damaged(file, f"has {shown(value)} as {key!r} instead of a value of type {kind.__name__}")
    return value


def _is_whole(value: Any) -> bool:
    # JSON's true would pass for an int
    return not isinstance(value, bool) and abs(value) <= LARGEST


def word(record: Json, key: str, file: Path) -> str:
    """A string without control characters and halves of characters; raises UsageError if there is none."""
    text: str = field(record, key, str, file)
    if not text.isprintable():
        raise damaged(file, f"has {shown(text)} as {key!r}, with characters that can't be printed")
    return text


def number(record: Json, key: str, file: Path) -> float:
    """A finite number; raises UsageError if there is none."""
    if key not in record:
        raise damaged(file, f"lacks {key!r}")
    return finite([record[key]], key, file)[0]


def finite(values: Iterable[Any], key: str, file: Path) -> list[float]:
    """The values as finite floats; raises UsageError if one is none."""
    numbers = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
            raise damaged(file, f"has {shown(value)} in {key!r} instead of a finite number")
        numbers.append(float(value))
    return numbers


def numbers(values: Sequence[Any], key: str, file: Path) -> NDArray[np.float64]:
    """The values as an array; raises UsageError if one is no finite number."""
    if set(map(type, values)) <= {int, float}:  # JSON's true would pass for an int
        with suppress(OverflowError):  # a whole number that no float holds
            array = np.array(values, dtype=np.float64)
            if np.all(np.abs(array) <= MOST):
                return array
    return np.array(finite(values, key, file))  # says which value it is


def wholes(values: Sequence[Any], key: str, file: Path) -> NDArray[np.int64]:
    """The values as an array; raises UsageError if one is no whole number that fits."""
    if set(map(type, values)) <= {int}:
        with suppress(OverflowError):
            array = np.array(values, dtype=np.int64)
            if not array.size or array.min() >= -LARGEST:
                return array
    return np.array([field({key: value}, key, int, file) for value in values], dtype=np.int64)


def fits(value: float) -> bool:
    """Whether a number is finite and not too large to compute with: sums and squares of it stay finite."""
    return abs(value) <= MOST and math.isfinite(value)


def shown(value: Any) -> str:
    """A value as messages show it: printable, on one line, and short."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # nested too deep; a number of too many digits
        text = f"something of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"
