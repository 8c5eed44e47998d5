"""Validates every mutation of a good submission in a process in which nothing may be run, imported or written.

python -m tests.leaderboard.entries.campaign GOOD.json

prints, as JSON, [name, the clause that has to refuse it, the clauses that do, what is printed] for each.
"""

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from leaderboard.entries.submission import parse_bytes
from leaderboard.validate import examine, is_sound, print_findings
from tests.leaderboard.entries.mutations import mutations

QUIET = {"open", "builtins.id", "os.listdir", "os.scandir"}
"""events that reading a file and comparing brings along; every other one is a breach"""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
HANGS_AFTER = 60
"""seconds"""
breaches: list[str] = []
watching = False


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: notes whatever a validator has no business doing."""
    if not watching:
        return
    if event not in QUIET or (event == "open" and arguments[2] & WRITES):
        breaches.append(f"{event} {arguments!r}")


def hang(number: int, frame: object) -> None:
    raise TimeoutError("it hangs")


def main(path: Path) -> None:
    """Try all mutations."""
    global watching
    raw = path.read_bytes()
    assert is_sound(examine(raw, path, accepted=[]))  # imports on its way what the clauses import
    cases = list(mutations(parse_bytes(raw)))
    sys.addaudithook(watch)
    signal.signal(signal.SIGALRM, hang)
    results = []
    for case in cases:
        printed = io.StringIO()
        signal.alarm(HANGS_AFTER)
        watching = True
        with contextlib.redirect_stdout(printed):
            findings = examine(case.raw, Path(case.filename), accepted=[])
            print_findings(Path(case.filename), findings)
        watching = False
        signal.alarm(0)
        printed.getvalue().encode("utf-8")
        failed = [clause for clause, messages in findings.items() if messages]
        results.append([case.name, case.clause, failed, printed.getvalue()])
    found = list(breaches)
    print(json.dumps({"results": results, "breaches": found, "noticed": noticed()}))


def noticed() -> int:
    """How many breaches the hook notices when there are two."""
    global watching
    before = len(breaches)
    watching = True
    with open(os.devnull, "w"):
        os.system("true")
    watching = False
    return len(breaches) - before


if __name__ == "__main__":
    main(Path(sys.argv[1]))
