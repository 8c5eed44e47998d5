"""How does the board become a static site that works from a file, without a server or a network?

`index.html`, a page per entry, `assets/` (style, script, Plotly) and `data/` (the series of the figures, a script a
piece, because a page opened from a file may load scripts but not fetch). Everything that a submitter wrote is text:
Jinja escapes it, the scripts hold it as JSON, and the page's policy forbids scripts and addresses outside the site.
"""

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from filters.errors import UsageError
from leaderboard.board import text as board_text
from leaderboard.board.figures import figure_data, numbers
from leaderboard.board.rows import VERDICTS, BoardRow, EntrySummary, Ranking, overview
from leaderboard.entries.submission import FilterSource
from leaderboard.statistics.tables import DETECTION_LEGEND, detection_sheets

GENERATOR = "FilterGym leaderboard.build"
CHOSEN = 3
"""filters drawn at first"""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' file:",  # a browser may not count a file's own folder as 'self'
        "style-src 'self' file: 'unsafe-inline'",  # Plotly sets styles while it draws
        "img-src 'self' file: data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
PAGE_TEXTS = (
    "bounds",
    "limits",
    "number",
    "p_value",
    "percent",
    "printable",
    "ratio",
    "saving",
    "short_task",
    "signed",
    "with_error",
    "at_a_glance",
)
"""functions of `board_text` that the pages call"""


def site_files(rankings: Sequence[Ranking]) -> Iterator[tuple[str, str]]:
    """Every file of the site as (path inside the site, content); the same rankings give the same bytes.

    Raises:
        UsageError: if the extra `board` is not installed.
    """
    pages = environment()
    entries = {summary.entry.key: summary for ranking in rankings for summary in ranking.entries}
    index = pages.get_template("index.html")
    yield (
        "index.html",
        index.render(rankings=rankings, overview=overview(rankings), entries=entries, points=_points, chosen=_chosen),
    )
    template = pages.get_template("entry.html")
    for key, summary in entries.items():
        yield page_of(key), template.render(_entry_context(summary))
        yield f"data/entry-{key}.js", f"board.receive({script_json(figure_data(summary))});\n"
    yield from _assets()


def page_of(key: str) -> str:
    """The file of an entry's page; the prefix keeps it clear of `index` and of names that a system reserves."""
    return f"entry-{key}.html"


def script_json(value: Any) -> str:
    """JSON for a script element or a script: no character of it can end the element or start markup.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII, so no line separators either
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def safe_url(url: str | None) -> str | None:
    """The address if it is an absolute one of http or https without unprintable characters or spaces, else None."""
    if not url or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


def environment() -> Any:
    """What the site's templates are filled with.

    Raises:
        UsageError: if the extra `board` is not installed.
    """
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise _missing(error) from error
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("leaderboard", "site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals.update({name: getattr(board_text, name) for name in PAGE_TEXTS})
    pages.globals.update(
        generator=GENERATOR,
        policy=POLICY,
        verdicts=VERDICTS,
        page_of=page_of,
        scale=_scale,
        place=_place,
        script_json=lambda value: markupsafe.Markup(script_json(value)),
    )
    return pages


def _assets() -> Iterator[tuple[str, str]]:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise _missing(error) from error
    yield "assets/plotly.min.js", get_plotlyjs()
    for name in ("board.css", "board.js"):
        yield f"assets/{name}", resources.files("leaderboard").joinpath("site", name).read_text(encoding="utf-8")


def _missing(error: ImportError) -> UsageError:
    return UsageError(f"the site needs {error.name}; install it with `pip install -c constraints.txt -e '.[board]'`")


def _scale(rows: Sequence[BoardRow]) -> float:
    """The difference at the ends of the interval bars, the same for all rows of a table."""
    ends = [abs(end) for row in rows if row.delta for end in row.delta if end == end]
    return min(max(ends, default=1.0), 1.0) or 1.0


def _place(value: float, scale: float) -> str:
    """Where a difference stands on a bar from −46 to 46; what lies beyond is drawn at its end."""
    return f"{46 * max(-1.0, min(1.0, value / scale)):.1f}"


def _chosen(ranking: Ranking) -> set[str]:
    """The best rows of different filters: many groups may run the same one."""
    best: dict[str, str] = {}
    for row in ranking.rows:
        best.setdefault(row.spec, row.row_id)
    return set(list(best.values())[:CHOSEN])


def _points(ranking: Ranking) -> list[dict[str, Any]]:
    """What the scatter shows, and how each row is called in the figures."""
    names = {summary.entry.key: summary.entry.name for summary in ranking.entries}
    several = len(ranking.entries) > 1
    return [_point(row, f"{row.spec} ({names[row.key]})" if several else row.spec) for row in ranking.rows]


def _point(row: BoardRow, label: str) -> dict[str, Any]:
    steps, time = row.se_peak, row.rt_peak
    x, y = numbers([100 * saved.share if saved else float("nan") for saved in (time, steps)])
    return {
        "id": row.row_id,
        "key": row.key,
        "label": board_text.printable(label),
        "x": x,
        "y": y,
        "bound": bool((steps and steps.bound) or (time and time.bound)),
        "says": board_text.describe(row),
    }


def _entry_context(summary: EntrySummary) -> dict[str, Any]:
    entry = summary.entry
    filters = [row for row in summary.rows if not row.is_baseline]
    return {
        "entry": entry,
        "summary": summary,
        "filters": filters,
        "detections": detection_sheets(summary.comparison),
        "detection_legend": DETECTION_LEGEND,
        "link": safe_url(entry.url),
        "chosen": {row.row_id for row in filters[:CHOSEN]},
        "points": [_point(row, row.spec) for row in filters],
        "provenance": list(_flat(entry.provenance)),
        "rerun": list(_flat(entry.rerun or {})),
        "sources": [(spec, _source(source)) for spec, source in sorted(entry.filters.items())],
    }


def _source(source: FilterSource) -> dict[str, Any]:
    """The filter's class and settings by name, and the text of its file; None for a filter of FilterGym."""
    facts = [("class", source.class_path), ("SHA-256 of its file", source.sha256)]
    facts += [(f"fields on {task}", _settings(source.fields[task])) for task in sorted(source.fields)]
    return {"facts": facts, "text": source.source}


def _settings(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(_flat(fields)) if name) or board_text.DASH


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as (dotted name, text)."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _flat(value[key], f"{name}.{key}" if name else str(key))
    else:
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
