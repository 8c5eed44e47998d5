"""How are the board's numbers and names written, on the pages and in Markdown?"""

import math
import re
import unicodedata

from leaderboard.board.rows import BoardRow, Ranking, Saving
from leaderboard.statistics.corruption import CORRUPTED
from leaderboard.statistics.significance import Interval

DASH = "–"
MINUS = "−"

_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&$@]|(?<=www)\.|:(?=/|[\w+-]+:)")
"""what means something in GitHub's Markdown inside a line; `www.`, `:/` and @ make links, two colons a picture"""


def number(value: float | None, *, digits: int = 3) -> str:
    """A number; a dash for None and NaN."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", MINUS)


def signed(value: float | None, *, digits: int = 3) -> str:
    """A number with its sign."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", MINUS)  # + 0.0: no minus before a zero


def limits(interval: Interval | None, *, digits: int = 3, sign: bool = True) -> str:
    """The limits of an interval in brackets; a dash where there are none."""
    if interval is None or not math.isfinite(interval.low):
        return DASH
    write = signed if sign else number
    return f"[{write(interval.low, digits=digits)}, {write(interval.high, digits=digits)}]"


def p_value(p: float | None) -> str:
    """A p value; small ones in powers of ten."""
    if p is None or math.isnan(p):
        return DASH
    return f"{p:.4f}" if p >= 1e-3 else f"{p:.1e}".replace("-0", MINUS).replace("-", MINUS)


def percent(share: float | None, *, digits: int = 1) -> str:
    """A share as a percentage, without the sign for it."""
    return number(None if share is None else 100 * share, digits=digits)


def saving(value: Saving | None) -> str:
    """A saving in percent; ≤ where it is only a bound."""
    if value is None:
        return DASH
    return f"{'≤ ' if value.bound else ''}{signed(100 * value.share, digits=0)}"


def bounds(value: Saving | None) -> str:
    """How many pairs never reached the level; empty if all did."""
    return f"{value.bound} of {value.pairs} never" if value and value.bound else ""


def with_error(mean: float, error: float) -> str:
    """mean ± standard error; large numbers with one decimal."""
    digits = 3 if abs(mean) < 10 else 1
    return number(mean, digits=digits) + (f" ± {number(error, digits=digits)}" if math.isfinite(error) else "")


def ratio(value: float | None) -> str:
    """A factor: × 1.05."""
    return DASH if value is None else f"× {value:.2f}"


def short_task(task: str) -> str:
    """A task's name for a narrow column: without its version, and what was made harmful in words."""
    return CORRUPTED.sub(r", \1 \2", re.sub(r"/v\d+", "", task))


def at_a_glance(ranking: Ranking) -> str:
    """One sentence on a ranking: how many filters are shown to help or to harm."""
    counts: dict[str, int] = {}
    for row in ranking.rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    said = [f"{counts[verdict]} {words}" for verdict, words in _VERDICT_WORDS.items() if verdict in counts]
    results = count(len(ranking.rows), "filter result", "filter results")
    return f"{results} from {count(len(ranking.entries), 'entry', 'entries')}: {', '.join(said) or 'none'}."


_VERDICT_WORDS = {
    "helps": "shown to help",
    "harms": "shown to harm",
    "not shown": "shown to do neither",
    "too few runs": "with too few runs to tell",
    "not computed": "without a comparison",
}


def count(many: int, one: str, more: str) -> str:
    """1 entry, 2 entries."""
    return f"{many} {one if many == 1 else more}"


def describe(row: BoardRow) -> str:
    """A row's result in one sentence, for those who can't see the table."""
    if row.delta is None:
        return f"{row.spec}: not compared"
    interval = limits(row.delta)
    return (
        f"{row.spec}: AUC difference {signed(row.delta.mean)} with 95 % interval {interval}, "
        f"p {p_value(row.p_holm)} after Holm, {row.verdict}"
    )


def printable(text: str) -> str:
    """One line without control and direction characters, which could rearrange what stands around it."""
    flat = " ".join(text.split())
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(mark)[0] == "C" else mark for mark in flat)


def markdown(text: str) -> str:
    """Text that Markdown shows as it stands, whatever it holds: no link, no image, no HTML, no table cell."""
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))
