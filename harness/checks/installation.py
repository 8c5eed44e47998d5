"""What can run here? Versions, device, and every task on both backends, found by trying.

The work of `python -m harness.doctor`.
"""

import platform

import torch

from algos.envs.extras import extra_for, is_installed
from algos.envs.interface import Backend
from algos.envs.vector import make_vector_env
from filters.errors import UsageError
from harness.cells.provenance import PACKAGES, code_version, cpu_model, package_version
from harness.sweeps import machine
from harness.tasks.catalogue import TASKS
from harness.tasks.task import Task

BACKENDS: tuple[Backend, ...] = ("gymnasium", "envpool")


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


def troubles() -> dict[str, dict[Backend, str | None]]:
    """By task and backend, what keeps the task from running; None if nothing does. Tasks that share an environment
    share its trial."""
    tried: dict[tuple[str, Backend], str | None] = {}
    found: dict[str, dict[Backend, str | None]] = {}
    for task in TASKS.values():
        found[task.id] = {}
        for backend in BACKENDS:
            key = (f"{task.args.env_id} {sorted(task.args.env_kwargs.items())}", backend)
            if key not in tried:
                tried[key] = trouble(task, backend)
            found[task.id][backend] = tried[key]
    return found


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
