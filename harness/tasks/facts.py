"""What has the leaderboard to know of the tasks? One file of facts, as it reads files and nothing else.

python -m harness.tasks.facts --write
"""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

import tyro

from filters.errors import run_command
from harness.tasks.catalogue import SUITES, TASKS, seeds_of
from harness.tasks.task import Task
from leaderboard.entries.catalogue import FILE


@dataclass(frozen=True)
class Args:
    """Compare the leaderboard's facts about tasks and suites with the tasks; exit code 1 if they differ."""

    write: bool = False
    """write them anew"""


def facts_of(task: Task) -> dict[str, Any]:
    """What a submission on the task is held against."""
    return {
        "agent": task.agent,
        "args": {name: value for name, value in asdict(task.args).items() if name not in ("seed", "device")},
        "references": task.references,
        "returns": task.returns,
        "checkpoints": task.checkpoints,
        "rounds": task.args.rounds,
        "batch_size": task.args.batch_size,
        "filter_defaults": task.filter_defaults,
        "apply": task.apply,
    }


def text() -> str:
    """The file: JSON with a line for every task and every suite."""
    suites = {name: {"tasks": tasks, "seeds": seeds_of(name)} for name, tasks in SUITES.items()}
    parts = {"tasks": {task.id: facts_of(task) for task in TASKS.values()}, "suites": suites}
    blocks = []
    for part, entries in parts.items():
        lines = (f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        blocks.append(f"  {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main(argv: list[str] | None = None) -> int:
    """Compare or write; returns the exit code."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.tasks.facts", description=__doc__)
    today = text()
    if args.write:
        FILE.write_text(today, encoding="utf-8", newline="\n")
        print(f"wrote {FILE.name}: {len(TASKS)} tasks, {len(SUITES)} suites")
        return 0
    same = FILE.is_file() and FILE.read_text(encoding="utf-8") == today
    print(
        "the facts are those of the tasks" if same else "the facts are others: run this with --write, and look at why"
    )
    return int(not same)


if __name__ == "__main__":
    sys.exit(run_command(main))
