"""Does a sweep survive being killed? Kills workers and parents at random moments and compares what is left.

python -m harness.checks.faults --kills 50

Starts a smoke sweep, kills something, starts the same command again, and so on; once all cells are there, the next lap
begins in a new folder. Every lap must end verified, equal to an undisturbed sweep, and with no finished cell run twice.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import tyro

from filters.errors import UsageError, run_command
from harness.checks.verification import verify
from leaderboard.runs.jsonfile import read_lines
from leaderboard.runs.store import find_cells, read_cell, status

Kind = Literal["worker", "parent", "all"]
"""who is killed: one worker, the parent alone, or the parent and all its workers at once"""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Args:
    """Kill workers and parents of a smoke sweep at random moments; exit code 1 if anything is lost by it."""

    kills: int = 50
    """how many SIGKILLs"""
    seed: int = 0
    """of the moments and victims; what a moment meets differs from machine to machine"""
    filter: tuple[str, ...] = ("iif",)
    """filters to run beside the baseline"""
    seeds: int = 3
    """seeds of the sweep"""
    longest: float = 6.0
    """most seconds between the moment that a sweep has workers and a kill"""
    jobs: int = 2
    """cells side by side"""
    out: Path = Path("runs/faults")
    """folder for the undisturbed sweep and the laps; must not exist yet"""


@dataclass
class Campaign:
    """What has happened so far."""

    args: Args
    rng: random.Random
    kills: Counter[Kind] = field(default_factory=Counter)
    sweeps: int = 0
    laps: int = 0
    finished: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """inode and time of every run.json seen so far"""
    problems: list[str] = field(default_factory=list)

    def command(self, out: Path) -> list[str]:
        """The sweep's command line."""
        words = ["--filter", *self.args.filter, "--suite", "smoke", "--seeds", str(self.args.seeds)]
        words += ["--jobs", str(self.args.jobs), "--out", str(out), "--retry-failed"]
        return [sys.executable, "-m", "harness.run", *words]

    def lap(self, out: Path) -> None:
        """Start the sweep until all its cells are there, with a kill each time while there are any left."""
        self.laps += 1
        while True:
            self.sweeps += 1
            process = subprocess.Popen(
                self.command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            victims = Victims(process)
            killed = self.kills.total() < self.args.kills and self.kill(victims)
            _, errors = process.communicate()
            self.look(out)
            if not killed and process.returncode:
                text = errors.decode(errors="replace").strip()
                self.problems.append(f"{out}: an undisturbed sweep ended with code {process.returncode}: {text}")
            if process.returncode == 0 or not killed:
                return

    def kill(self, victims: "Victims") -> bool:
        """Kill at a random moment; False if the sweep ended before."""
        moment = self.rng.uniform(0, self.args.longest)
        kind = self.rng.choice(KINDS)
        if not victims.wait_for_workers() or not victims.wait(moment):
            return False
        chosen = victims.pick(kind, self.rng)
        if not chosen:
            return False
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kills[kind] += 1
        return True

    def look(self, out: Path) -> None:
        """Note every finished cell, and whether one that was finished before was touched."""
        for path in out.rglob("run.json"):
            found = path.stat()
            now = (found.st_ino, found.st_mtime_ns)
            if self.finished.setdefault(path, now) != now:
                self.problems.append(f"{path.parent} was run again after it was complete")
        lost = [path for path in self.finished if path.is_relative_to(out) and not path.exists()]
        self.problems += [f"{path.parent} was complete and is so no more" for path in lost]

    def judge(self, out: Path, undisturbed: dict[str, Any]) -> None:
        """Compare a lap with the undisturbed sweep and verify it."""
        found = results(out)
        self.problems += [f"{out}: {name} is missing" for name in undisturbed.keys() - found.keys()]
        self.problems += [
            f"{out}: {name} differs" for name, cell in found.items() if undisturbed.get(name, cell) != cell
        ]
        checked = verify(out)
        self.problems += [*checked.problems, *checked.notes]


class Victims:
    """A sweep's processes, found by their parent's number."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def workers(self) -> list[int]:
        """The worker processes that live."""
        pid = self._process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            return [int(child) for child in children if _is_worker(child)]
        return []

    def wait_for_workers(self) -> bool:
        """Wait until there are workers; False if the sweep ends first."""
        while not self.workers():
            if not self.wait(0.02):
                return False
        return True

    def wait(self, seconds: float) -> bool:
        """Wait; False if the sweep ends first."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return False
        return True

    def pick(self, kind: Kind, rng: random.Random) -> list[int]:
        """Whom to kill."""
        workers = self.workers()
        if kind == "worker":
            return [rng.choice(workers)] if workers else []
        return [self._process.pid, *(workers if kind == "all" else [])]


def _is_worker(pid: str) -> bool:
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def results(out: Path) -> dict[str, Any]:
    """All that a repetition has to repeat: everything but times, by the cell's folder; complete cells only."""
    found = {}
    for path in find_cells(out):
        if status(path) == "complete":
            cell = read_cell(path)
            returns = [episodes.tolist() for episodes in cell.returns]
            numbers = (cell.steps.tolist(), cell.kept.tolist(), cell.optimizer_steps.tolist(), losses(path))
            found[str(path.relative_to(out))] = (cell.config, returns, *numbers)
    return found


def losses(path: Path) -> list[Any]:
    """The lines of rounds.jsonl without their seconds."""
    lines = read_lines(path / "rounds.jsonl")
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def campaign(args: Args) -> Campaign:
    """Run the undisturbed sweep, then laps until all kills are done.

    Raises:
        UsageError: the folder exists, or the machine does not tell which processes a sweep has (only Linux does).
    """
    if args.out.exists():
        raise UsageError(f"{args.out} exists; delete it or choose another --out")
    if not Path(f"/proc/{os.getpid()}/task").is_dir():
        raise UsageError("the campaign finds workers in /proc, which this system does not have; run it on Linux")
    going = Campaign(args, random.Random(args.seed))
    first = subprocess.run(going.command(args.out / "undisturbed"), stdout=subprocess.DEVNULL, check=False)
    if first.returncode:
        raise UsageError(f"the undisturbed sweep ended with code {first.returncode}; mend that first")
    undisturbed = results(args.out / "undisturbed")
    while going.kills.total() < args.kills:
        out = args.out / f"lap-{going.laps + 1}"
        going.lap(out)
        going.judge(out, undisturbed)
    return going


def main(argv: list[str] | None = None) -> int:
    """Run the campaign and print its figures; exit code 1 if anything was lost."""
    args = tyro.cli(Args, args=argv, prog="python -m harness.checks.faults", description=__doc__)
    began = time.monotonic()
    done = campaign(args)
    kinds = ", ".join(f"{done.kills[kind]} {kind}" for kind in KINDS)
    print(f"{done.kills.total()} kills ({kinds}) in {done.sweeps} sweeps over {done.laps} laps")
    print(f"{len(done.finished)} cells finished, {time.monotonic() - began:.0f} s")
    for problem in done.problems:
        print(f"problem: {problem}")
    print(f"{len(done.problems)} problems")
    return int(bool(done.problems))


if __name__ == "__main__":
    sys.exit(run_command(main))
