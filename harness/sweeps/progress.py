"""How far is a sweep, and how long will it still take?"""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from harness.cells.cell import Cell
from harness.sweeps.launch import Event
from leaderboard.runs.store import printable


class SweepProgress:
    """Bars for every cell under way and for the whole on a terminal; elsewhere a line for every cell that ends.

    Args:
        console: where to show it.
        cells: the cells that are going to run.
        quiet: no bars on a terminal either.
    """

    def __init__(self, console: Console, cells: list[Cell], *, quiet: bool = False) -> None:
        self._console, self._shows_bars = console, console.is_terminal and not quiet
        self._aside: set[Cell] = set()
        self._work = sum(cell.task.work for cell in cells)
        self._count, self._ended, self._done = len(cells), 0, 0.0
        self._under_way: dict[Cell, float] = {}
        self._began = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
        self._bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self._total = self._bars.add_task(f"all {len(cells)} cells", total=self._work)
        self._tasks: dict[Cell, TaskID] = {}

    def __enter__(self) -> "SweepProgress":
        if self._shows_bars:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def on_event(self, event: Event) -> None:
        """Take in what a worker reports."""
        if event.busy:
            self._put_aside(event.cell)
            return
        if event.cell not in self._tasks:
            self._tasks[event.cell] = self._bars.add_task(str(event.cell), total=1.0)
        share = 1.0 if event.ended else event.rounds_done / max(event.rounds, 1)
        self._under_way[event.cell] = share * event.cell.task.work
        self._bars.update(self._tasks[event.cell], completed=share)
        if event.ended:
            self._end(event)
        self._bars.update(self._total, completed=self._done + sum(self._under_way.values()))

    def _put_aside(self, cell: Cell) -> None:
        self._under_way.pop(cell, None)
        self._bars.remove_task(self._tasks.pop(cell))
        if cell not in self._aside:
            self._aside.add(cell)
            self._say(f"{cell}: another sweep is running it; its result is taken from there")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _end(self, event: Event) -> None:
        self._done += self._under_way.pop(event.cell)
        self._ended += 1
        self._bars.remove_task(self._tasks[event.cell])
        if event.error or not self._shows_bars:
            outcome = f"failed: {' '.join(printable(event.error).split())}" if event.error else "complete"
            self._say(f"[{self._ended}/{self._count}] {event.cell}: {outcome}{self._time_left()}")

    def _time_left(self) -> str:
        done = self._done + sum(self._under_way.values())
        seconds = (time.monotonic() - self._began) * (self._work - done) / done
        return f" (about {seconds / 60:.1f} min left)" if self._ended < self._count else ""
