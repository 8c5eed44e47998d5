"""Where does a round's time go: by phase, and within the update by operation?"""

import torch
from torch.profiler import ProfilerActivity

from algos.training.clock import PHASES
from algos.training.recorder import SilentRecorder
from harness.bench.rounds import Ours
from harness.tasks.task import Task

OPERATIONS = 12
"""of the update, the most expensive ones"""


def profile(task: Task, rounds: int, device: str) -> str:
    """Markdown: milliseconds of each phase of a round, per filter and mode, and the update's operations."""
    sections = [f"# {task.id}\n", phase_table(task, rounds, device)]
    for mode in ("off", "on"):
        sections += [f"\nOperations of one update, compile {mode}:\n\n```\n{operations(task, mode, device)}\n```\n"]
    return "\n".join(sections)


def phase_table(task: Task, rounds: int, device: str) -> str:
    """A row a filter and mode; evaluation as its share of the run under the task's own protocol."""
    phases = [phase for phase in PHASES if phase not in ("startup", "logging")]
    lines = [
        f"| compile | filter | {' | '.join(f'{phase} ms' for phase in phases)} | evaluation share |",
        "|---|---|" + "---:|" * (len(phases) + 1),
    ]
    for mode, spec in (("off", "none"), ("on", "none"), ("on", "iif"), ("on", "dtv-loo")):
        ours = Ours(task, spec=spec, compile=mode, device=device)
        ours.round()  # to warm up
        ours.recorder = SilentRecorder()
        ours.rounds(rounds)()
        ours.evaluate()
        spent = {phase: 1000 * ours.recorder.clock.seconds[phase] / rounds for phase in phases}
        spent["evaluation"] *= rounds / ours.args.eval_every  # one was made
        share = spent["evaluation"] / sum(spent.values())
        numbers = " | ".join(f"{spent[phase]:.0f}" for phase in phases)
        lines.append(f"| {mode} | {spec} | {numbers} | {share:.0%} |")
    return "\n".join(lines) + "\n"


def operations(task: Task, mode: str, device: str) -> str:
    """The profiler's table of one epoch of updates."""
    ours = Ours(task, compile=mode, device=device)
    batches = ours.minibatches(task.args.batch_size // task.args.minibatch_size)
    ours.state.calls.step(batches[0])  # to warm up
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    with torch.profiler.profile(activities=kinds) as seen:
        for mb in batches:
            ours.state.calls.step(mb)
    order = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    table: str = seen.key_averages().table(sort_by=order, row_limit=OPERATIONS, max_name_column_width=60)
    return table
