"""How far are the cells on the nodes? Apart from the rest, so that its process need not load PyTorch."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class News:
    """How far a cell is."""

    attempt: int
    done: int
    """rounds"""
    rounds: int
    """in all; 0 at the start"""
    began: float
    """when the attempt was first heard of, by the monotonic clock of the driver's machine"""


class Board:
    """An actor that takes in how far the cells are, until the driver asks."""

    def __init__(self) -> None:
        self._news: dict[int, News] = {}
        self._began: dict[tuple[int, int], float] = {}

    def tell(self, number: int, attempt: int, done: int, rounds: int) -> None:
        """Cell `number`, in its `attempt`, has done that many rounds."""
        began = self._began.setdefault((number, attempt), time.monotonic())
        self._news[number] = News(attempt, done, rounds, began)

    def take(self) -> dict[int, News]:
        """What has changed since the last call, by the cell's number."""
        news, self._news = self._news, {}
        return news
