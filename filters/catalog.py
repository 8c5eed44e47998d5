"""Which filters are there, and what does each do? The table in docs/filters.md, made from their docstrings.

python -m filters.catalog
"""

import inspect
import re
import sys
from dataclasses import MISSING, fields

from filters.api import Filter
from filters.registry import find, names

HEADINGS = ("Keeps", "Why", "Cost", "Reference")


def sections(cls: type[Filter]) -> dict[str, str]:
    """The text under each heading of a filter's docstring, on one line; raises ValueError if one is missing."""
    text = inspect.getdoc(cls) or ""
    found = {}
    for heading in HEADINGS:
        match = re.search(rf"^{heading}: (.*?)(?=^\S|\Z|\n\n)", text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise ValueError(f"the docstring of {cls.__name__} has no heading {heading}")
        found[heading] = " ".join(match[1].split())
    return found


def settings(cls: type[Filter]) -> str:
    """The fields with their defaults, as a spec would set them."""
    return ", ".join(f"`{field.name}={_default(field)}`" for field in fields(cls)) or "–"


def _default(field: object) -> str:
    metadata, default = getattr(field, "metadata"), getattr(field, "default")  # noqa: B009  Field is generic in Any
    return str(metadata.get("spec", "" if default is MISSING else default)).lower()


def table() -> str:
    """The Markdown table of all built-in filters."""
    lines = ["| filter | keeps | cost | reference | fields |", "|---|---|---|---|---|"]
    for name in names():
        cls = find(name)
        if cls.__module__.startswith("filters."):
            text = sections(cls)
            cells = (f"`{name}`", text["Keeps"], text["Cost"], text["Reference"], settings(cls))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
    sys.exit(0)
