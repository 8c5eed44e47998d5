"""What does LEADERBOARD.md say?"""

import re
from collections.abc import Sequence

from leaderboard.board.rows import VERDICTS, BoardRow, EntrySummary, Ranking, Saving, overview
from leaderboard.board.text import (
    DASH,
    at_a_glance,
    bounds,
    limits,
    markdown,
    p_value,
    percent,
    ratio,
    saving,
    short_task,
    signed,
)
from leaderboard.statistics.significance import Interval

INTRODUCTION = """# Leaderboard

Made by `python -m leaderboard.build` from the files in `leaderboard/submissions/`; every number is computed from raw
evaluation returns. The same command makes a site with learning curves and a page for every entry."""

LEGEND = """## How to read it

- **Δ AUC**, the ranking: normalised area under the evaluation curve (0 = random policy, 1 = solved task), filter minus
  the same entry's own baseline `none` on the same task and seed; mean over all pairs with its 95 % t interval. Under a
  task's name stands the same for that task alone, which only describes.
- **p (Holm)**: joint sign-flip test over all (task, seed) pairs, corrected for the number of filters in the entry;
  beside it the smallest value that so few pairs can give.
- **Steps saved, time saved**: SE_peak and RT_peak, the share of environment steps and of training time saved until the
  baseline's own peak. ≤: in some pairs (their number follows) the filter never reaches it and the whole budget counts.
- **Time**: training time for the same number of steps, filter / baseline. **Filter time**: the filter's own share of
  the training time. **Kept**: share of the records that the updates could use.
- **Status**: self-reported, or re-run by somebody else with the same result."""


def leaderboard_markdown(rankings: Sequence[Ranking]) -> str:
    """The whole file; the same rankings give the same bytes."""
    verdicts = "\n".join(f"- **{name}**: {meaning}." for name, meaning in VERDICTS.items())
    sections = [_section(ranking) for ranking in rankings] or ["No entry yet."]
    first = [_overview(rankings)] if len(rankings) > 1 else []
    return "\n\n".join([INTRODUCTION, *first, *sections, LEGEND, verdicts]) + "\n"


def _overview(rankings: Sequence[Ranking]) -> str:
    lines = [["Filter", *(f"[{markdown(ranking.title)}](#{_anchor(ranking)})" for ranking in rankings)]]
    lines += [["---"] * len(lines[0])]
    lines += [[markdown(spec), *(verdict or DASH for verdict in verdicts)] for spec, verdicts in overview(rankings)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## Which suite says what\n\nThe verdict on every filter, suite by suite.\n\n{table}"


def _anchor(ranking: Ranking) -> str:
    """Where a forge puts the suite's heading."""
    return re.sub(r"[^a-z0-9 -]", "", f"Suite {ranking.title}".lower()).replace(" ", "-")


def _section(ranking: Ranking) -> str:
    tasks = ", ".join(markdown(task) for task in ranking.tasks)
    entries = {summary.entry.key: summary for summary in ranking.entries}
    columns = [
        "#",
        "Filter",
        "Entry",
        "Δ AUC [95 %]",
        "p (Holm)",
        "Smallest p",
        "Verdict",
        *(markdown(short_task(task)) for task in ranking.tasks),
        "Steps saved %",
        "Time saved %",
        "Time",
        "Filter time %",
        "Kept %",
        "Status",
    ]
    rule = ["---:", "---", "---", *["---:"] * 3, "---", *["---:"] * (len(ranking.tasks) + 5), "---"]
    rows = [_row(place, row, entries[row.key]) for place, row in enumerate(ranking.rows, start=1)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *rows))
    return f"## Suite {markdown(ranking.title)}\n\nTasks: {tasks}. {at_a_glance(ranking)}\n\n{table}"


def _row(place: int, row: BoardRow, summary: EntrySummary) -> list[str]:
    return [
        str(place),
        markdown(row.spec),
        f"{markdown(summary.entry.name)} ({markdown(', '.join(summary.entry.authors))})",
        _difference(row.delta),
        p_value(row.p_holm),
        p_value(row.smallest_p_holm),
        row.verdict,
        *(_difference(row.delta_on(task)) for task in summary.tasks),
        _saving(row.se_peak),
        _saving(row.rt_peak),
        ratio(row.time_ratio),
        percent(row.filter_share),
        percent(row.kept),
        summary.entry.status,
    ]


def _saving(value: Saving | None) -> str:
    return f"{saving(value)} ({bounds(value)})" if bounds(value) else saving(value)


def _difference(delta: Interval | None) -> str:
    return f"{signed(delta.mean)} {limits(delta)}" if delta else DASH
