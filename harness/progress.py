"""How far is a sweep, and how long will it still take?"""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from harness.cell import Cell
from harness.launch import Event


class SweepProgress:
    """Bars for every cell under way and for the whole on a terminal; elsewhere a line for every cell that ends.

    Args:
        console: where to show it.
        cells: the cells that are going to run.
    """

    def __init__(self, console: Console, cells: list[Cell]) -> None:
        self._console = console
        self._work = sum(cell.task.work for cell in cells)
        self._count, self._ended, self._done = len(cells), 0, 0.0
        self._under_way: dict[Cell, float] = {}
        self._began = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
        self._bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self._total = self._bars.add_task(f"all {len(cells)} cells", total=self._work)
        self._tasks: dict[Cell, TaskID] = {}

    def __enter__(self) -> "SweepProgress":
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def on_event(self, event: Event) -> None:
        """Take in what a worker reports."""
        if event.cell not in self._tasks:
            self._tasks[event.cell] = self._bars.add_task(str(event.cell), total=1.0)
        share = 1.0 if event.ended else event.rounds_done / max(event.rounds, 1)
        self._under_way[event.cell] = share * event.cell.task.work
        self._bars.update(self._tasks[event.cell], completed=share)
        if event.ended:
            self._end(event)
        self._bars.update(self._total, completed=self._done + sum(self._under_way.values()))

    def _end(self, event: Event) -> None:
        self._done += self._under_way.pop(event.cell)
        self._ended += 1
        self._bars.remove_task(self._tasks[event.cell])
        if event.error or not self._console.is_terminal:
            outcome = f"failed: {event.error}" if event.error else "complete"
            self._console.print(
                f"[{self._ended}/{self._count}] {event.cell}: {outcome}{self._time_left()}",
                markup=False,
                soft_wrap=True,
            )

    def _time_left(self) -> str:
        done = self._done + sum(self._under_way.values())
        seconds = (time.monotonic() - self._began) * (self._work - done) / done
        return f" (about {seconds / 60:.1f} min left)" if self._ended < self._count else ""
