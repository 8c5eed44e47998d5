"""The table of filters in the documentation is made from the docstrings."""

from pathlib import Path

import pytest

from filters.catalog import HEADINGS, sections, table
from filters.registry import find, names


@pytest.mark.parametrize("name", names())
def test_every_filter_says_what_it_keeps_why_at_what_cost_and_from_where(name: str) -> None:
    assert all(sections(find(name))[heading] for heading in HEADINGS)


def test_the_page_of_filters_holds_the_table_of_today() -> None:
    page = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")
    assert table() in page, "put the output of python -m filters.catalog into docs/filters.md"


def test_a_docstring_without_a_heading_is_refused() -> None:
    from tests.broken_filters import KeepsCount

    with pytest.raises(ValueError, match="KeepsCount has no heading Keeps"):
        sections(KeepsCount)
