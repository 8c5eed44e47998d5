"""What do the commands that look into rounds share? One job a seed, where it starts, and the way to its rounds."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filters.api import Filter
from filters.errors import UsageError
from filters.registry import make, parse
from harness.drawing.figures import require_figures
from harness.looking.findings import read_finding, settings_of
from harness.rounds.start import read_start
from harness.rounds.training import Moment, See, Training
from harness.sweeps.plan import check_writable, parse_seeds
from harness.sweeps.side_by_side import Report
from harness.tasks.catalogue import find_task
from harness.tasks.task import Task
from leaderboard.runs.jsonfile import Json
from leaderboard.runs.store import cell_dir


@dataclass(frozen=True)
class Look:
    """What all these command lines have; the commands say what task and filter are to them."""

    task: str = "FrozenLake"
    """task to look into"""
    filter: str = "iif"
    """the filter"""
    policy: Path | None = None
    """start here: a policy of python -m harness.reference, from which rounds count; or a run's checkpoint.pt, after
    which they count on (say that run's seed and filter, too)"""
    jobs: int = 0
    """seeds side by side; 0 means one a core"""
    out: Path = Path("runs/figures")
    """folder of the findings"""


@dataclass(frozen=True)
class Job:
    """One seed of a command."""

    args: Look
    """the command line; all of it counts among the settings of the findings"""
    task: Task
    seed: int
    rounds: tuple[int, ...]
    """the chosen ones, sorted"""
    trained_by: str
    """the filter of the updates; that of `args` does the scoring"""

    @property
    def spec(self) -> str:
        """The filter that scores, and behind an @ the one that trained if it is another."""
        spec, by = str(parse(self.args.filter)), str(parse(self.trained_by))
        return spec if by == spec else f"{spec}@{by}"

    @property
    def folder(self) -> Path:
        """Where the seed's findings go."""
        return cell_dir(self.args.out, self.task.id, self.spec, self.seed)

    @property
    def head(self) -> Json:
        """What every finding begins with."""
        return {"task": self.task.id, "filter": self.spec, "seed": self.seed}

    def make_filter(self) -> Filter:
        """The filter."""
        return make(self.args.filter, self.task.filter_defaults)

    def make_trainer(self) -> Filter:
        """The filter of the updates."""
        return make(self.trained_by, self.task.filter_defaults)

    def settings(self, **more: Any) -> Json:
        """All that can change the seed's findings."""
        fields = {"filter_fields": asdict(self.make_filter()), "trainer_fields": asdict(self.make_trainer())}
        return settings_of(self.args, seed=self.seed, task_id=self.task.id, **fields, **more)

    def read_finding(self, name: str, settings: Json, report: Report) -> Json | None:
        """The finding of that name if the very same command has left it already."""
        found = read_finding(self.folder / name, settings)
        if found is not None:
            report(1.0, f"seed {self.seed} is there already")
        return found

    def open_training(self) -> Training:
        """The run to look into, from where it starts."""
        return Training(self.task, self.make_trainer(), seed=self.seed, start=read_start(self.args.policy))

    def collect_rounds(self, training: Training, report: Report, see: See | None = None) -> Iterator[Moment]:
        """Every round up to the last one, for the caller to update; `see` looks at the first and at the chosen ones."""
        first, last = training.state.round + 1, self.rounds[-1]
        for k in range(first, last + 1):
            report((k - first) / (last + 1 - first), f"seed {self.seed}: round {k}")
            yield training.collect(see if k in self.rounds or k == first else None)


def plan_jobs(
    args: Look, *, seeds: tuple[int, ...], rounds: str, name: str, counts: bool, trained_by: str = ""
) -> list[Job]:
    """One job a seed.

    Args:
        args: the command line.
        seeds: the seeds.
        rounds: the text of the option `name`, see `parse_rounds`.
        name: that option.
        counts: whether a single number means that many rounds.
        trained_by: the filter of the updates; that of `args` if empty.

    Raises:
        UsageError: for anything that can't be.
    """
    require_figures()
    task = find_task(args.task)
    start = read_start(args.policy)
    behind = start.round if start else 0
    numbers = parse_rounds(rounds, most=task.args.rounds, name=name, counts=counts, behind=behind)
    if behind and len(seeds) > 1:
        raise UsageError(f"--policy {args.policy} is a checkpoint of one run; give the seed of that run alone")
    jobs = [Job(args, task, seed, numbers, trained_by or args.filter) for seed in seeds]
    jobs[0].make_filter()
    jobs[0].make_trainer()
    check_writable(args.out)
    return jobs


def parse_seed(text: str) -> tuple[int, ...]:
    """`3` -> just 3; `0,1,2` -> those."""
    return parse_seeds(text if "," in text else f"{text},")


def parse_rounds(text: str, *, most: int, name: str, counts: bool, behind: int = 0) -> tuple[int, ...]:
    """`2,5,10` -> those rounds, sorted; a single number is that round, or where it `counts`, `8` -> the next eight.

    Args:
        text: what was said.
        most: the task's budget of rounds.
        name: the option.
        counts: whether a single number means that many rounds.
        behind: rounds that lie behind the start; the next one is `behind` + 1.

    Raises:
        UsageError: no such form, or a round that lies behind or beyond `most`.
    """
    try:
        numbers = sorted({int(word) for word in text.replace(" ", "").split(",") if word})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise UsageError(f"{name} takes rounds from 1 on, such as 8 or 2,5,10; got {text!r}")
    many = counts and "," not in text
    last = behind + numbers[0] if many else numbers[-1]
    if last > most:
        budget = f"the task's budget of {most} rounds; choose {behind + 1}..{most}"
        raise UsageError(f"{name}: round {last} is beyond {budget}")
    if many:
        return tuple(range(behind + 1, last + 1))
    if numbers[0] <= behind:
        raise UsageError(f"{name} {text}: the checkpoint was made after round {behind}; choose {behind + 1}..{most}")
    return tuple(numbers)
