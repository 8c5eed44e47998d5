"""What can run here? Versions, device, and every task on both backends.

python -m harness.doctor
"""

import platform
import sys
from dataclasses import dataclass

import torch
import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from algos.envs.extras import MODULES, extra_for, is_installed
from algos.envs.interface import Backend
from algos.envs.vector import make_vector_env
from filters.errors import UsageError, run_command
from harness import run
from harness.cells.provenance import PACKAGES, code_version, cpu_model, package_version
from harness.sweeps import machine
from harness.tasks.catalogue import SUITES, TASKS, Task

DEFAULT_SUITE = run.Args.suite
BACKENDS: tuple[Backend, ...] = ("gymnasium", "envpool")


@dataclass(frozen=True)
class Args:
    """Print versions, device and which tasks can run; exit code 1 if the default suite can't."""


def main(argv: list[str] | None = None) -> int:
    """Look and print."""
    tyro.cli(Args, args=argv, prog="python -m harness.doctor", description=__doc__)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(facts("packages", packages()))
    console.print(facts("device", device()))
    troubles = {task.id: {backend: trouble(task, backend) for backend in BACKENDS} for task in TASKS.values()}
    console.print(task_table(troubles))
    for extra in MODULES:
        if not is_installed(extra):
            console.print(f"the extra {extra} is not installed: pip install 'filtergym[{extra}]'", markup=False)
    broken = [task_id for task_id in SUITES[DEFAULT_SUITE] if troubles[task_id]["gymnasium"]]
    if broken:
        console.print(f"the default suite ({DEFAULT_SUITE}) can't run: {', '.join(broken)}")
        return 1
    console.print(f"the default suite ({DEFAULT_SUITE}) can run")
    return 0


def packages() -> dict[str, str]:
    """Versions of the code, of Python and of the packages that can change a result."""
    code = code_version()
    commit = f"commit {code['commit'][:12]}{', edited' if code['dirty'] else ''}" if code["commit"] else "no checkout"
    found = {name: package_version(name) or "not installed" for name in PACKAGES}
    return {"python": platform.python_version(), **found, "filtergym": f"{found['filtergym']} ({commit})"}


def device() -> dict[str, str]:
    """What the machine computes with."""
    total = machine.memory()
    cuda = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if torch.cuda.is_available() else "none"
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": str(machine.cores()),
        "memory": f"{total / 2**30:.1f} GiB" if total else "unknown",
        "cuda": cuda,
    }


def trouble(task: Task, backend: Backend) -> str | None:
    """What keeps the task from running on this backend, found by trying; None if nothing does."""
    extra = extra_for(task.args.env_id, backend)
    if extra and not is_installed(extra):
        return f"pip install 'filtergym[{extra}]'"
    try:
        envs = make_vector_env(task.args.env_id, 1, task.args.env_kwargs, backend)
        envs.reset([0])
        envs.close()
    except UsageError as error:
        return str(error)
    except Exception as error:  # an installation can be broken in any way, and the other tasks are to be told of too
        return f"{type(error).__name__}: {error}"
    return None


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
