"""Which device trains a task faster, measured rather than guessed?"""

import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import torch

from algos.training.recorder import SilentRecorder
from filters.api import keep_all
from filters.errors import UsageError
from harness.tasks.task import AgentArgs, Task
from leaderboard.runs.store import cell_dir, find_cells, read_config

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda")

STEPS = 64
"""steps in each environment that a measurement collects"""


def device_of_past_runs(task: Task, out: Path, *, here: bool = True) -> Device | None:
    """The device of a run of the task below `out`: results of different devices are never compared.

    A GPU counts only where there is one, unless the cells run on other machines than `here`.
    """
    for path in find_cells(cell_dir(out, task.id, "none", 0).parent.parent):
        with suppress(UsageError):  # damaged ones are reported where they are read for their results
            device = read_config(path)["device"]
            if device == "cpu" or (device == "cuda" and (not here or torch.cuda.is_available())):
                return cast(Device, device)
    return None


def faster_device(task: Task) -> Device:
    """The device on which a short round of the task takes less time; says so where there is a choice."""
    if not torch.cuda.is_available():
        return "cpu"
    found: dict[Device, float] = {device: seconds_of_a_round(task, device) for device in DEVICES}
    best = min(found, key=lambda device: found[device])
    seconds = ", ".join(f"{found[device]:.2f} s on {device}" for device in DEVICES)
    print(f"{task.id}: a short round takes {seconds}; taking {best}", file=sys.stderr)
    return best


def seconds_of_a_round(task: Task, device: Device) -> float:
    """Seconds of collecting and updating in a cut round, after one to warm up; one thread, as in a sweep."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    args = short(task.args, device)
    state = task.module.open_state(args)
    try:
        for _ in range(2):
            start = time.perf_counter()
            rollout, _ = task.module.collect(state, args, SilentRecorder())
            task.module.update(state, rollout, keep_all(rollout), "repack", args)
            if device == "cuda":
                torch.cuda.synchronize()
            spent = time.perf_counter() - start
    finally:
        state.envs.close()
        torch.set_num_threads(threads)
    return spent


def short(args: AgentArgs, device: Device) -> Any:
    """The settings with a cut rollout and the same balance of collecting and updating."""
    steps = min(args.num_steps, max(STEPS, -(-args.minibatch_size // args.num_envs)))
    return replace(args, num_steps=steps, device=device, compile="off")
