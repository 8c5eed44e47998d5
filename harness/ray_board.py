"""How far are the cells on the nodes? Apart from the rest, so that its process need not load PyTorch."""


class Board:
    """An actor that takes in how far the cells are, until the driver asks."""

    def __init__(self) -> None:
        self._news: dict[int, tuple[int, int, int]] = {}

    def tell(self, number: int, attempt: int, done: int, rounds: int) -> None:
        """Cell `number`, in its `attempt`, has done that many rounds."""
        self._news[number] = (attempt, done, rounds)

    def take(self) -> dict[int, tuple[int, int, int]]:
        """What has changed since the last call, by the cell's number."""
        news, self._news = self._news, {}
        return news
