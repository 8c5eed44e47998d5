"""What can run here? Versions, device, and every task on both backends.

python -m harness.doctor
"""

import sys
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from algos.envs.extras import MODULES, is_installed
from algos.envs.interface import Backend
from filters.errors import run_command
from harness.checks.installation import BACKENDS, device, packages, troubles
from harness.sweeps.plan import Sweep
from harness.tasks.catalogue import SUITES

DEFAULT_SUITE = Sweep.suite


@dataclass(frozen=True)
class Args:
    """Print versions, device and which tasks can run; exit code 1 if the default suite can't."""


def main(argv: list[str] | None = None) -> int:
    """Look and print."""
    tyro.cli(Args, args=argv, prog="python -m harness.doctor", description=__doc__)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(facts("packages", packages()))
    console.print(facts("device", device()))
    found = troubles()
    console.print(task_table(found))
    for extra in MODULES:
        if not is_installed(extra):
            console.print(f"the extra {extra} is not installed: pip install 'filtergym[{extra}]'", markup=False)
    broken = [task_id for task_id in SUITES[DEFAULT_SUITE] if found[task_id]["gymnasium"]]
    if broken:
        console.print(f"the default suite ({DEFAULT_SUITE}) can't run: {', '.join(broken)}")
        return 1
    console.print(f"the default suite ({DEFAULT_SUITE}) can run")
    return 0


def task_table(troubles: dict[str, dict[Backend, str | None]]) -> Table:
    """One row a task: on which backend it runs, else the command or the reason."""
    table = Table(title="tasks", title_justify="left")
    table.add_column("task", no_wrap=True)
    for backend in BACKENDS:
        table.add_column(f"on {backend}")
    for task_id, found in troubles.items():
        table.add_row(task_id, *(Text(found[backend] or "runs") for backend in BACKENDS))  # Text: [box2d] is no markup
    return table


def facts(title: str, rows: dict[str, str]) -> Table:
    """Names and values."""
    table = Table(title=title, title_justify="left", show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    return table


if __name__ == "__main__":
    sys.exit(run_command(main))
