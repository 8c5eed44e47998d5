"""Which failures are somebody's to mend rather than defects of this project, and how does a command say so?"""

import io
import os
import sys
from collections.abc import Callable


class UsageError(Exception):
    """Bad input. The message is one sentence for the person at the keyboard: what is wrong and what to do."""


class FilterError(Exception):
    """A filter broke its contract while it ran (raised, wrong shape, wrong dtype, NaN).

    The run that used it fails with this sentence; the other runs of a sweep go on.
    """


class TrainingError(Exception):
    """Training can't go on (a loss that is not finite); the message says in which round."""


def run_command(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code: 2 with one sentence for bad input, 1 for a run that failed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")  # Δ and ≤ become ?; a sweep must not end in an error over them
    try:
        return command() or 0
    except UsageError as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 2
    except (FilterError, TrainingError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output has gone, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the flush at exit finds a reader
        return 141


def one_line(error: Exception) -> str:
    """The message on one line, without what could steer a terminal: it may quote file names and files."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in " ".join(str(error).split()))
