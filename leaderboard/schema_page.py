"""Which fields does a submission have? `python -m leaderboard.schema_page` prints SCHEMA.md from the schema itself."""

import sys

from filters.errors import run_command
from leaderboard.entries.schema import Kind, Map, Maybe, Record
from leaderboard.entries.submission import MAX_BYTES, SCHEMA, SCHEMAS

HEAD = f"""# The schema of submissions

A submission is one JSON file of at most {MAX_BYTES // 2**20} MiB: the results of the baseline `none` and of one or more
filters on every task of one suite, with seeds 0 to 4. `python -m leaderboard.submit` writes it, `python -m
leaderboard.validate` checks it, `python -m leaderboard.rerun` runs some of its runs again. This page is the output of
`python -m leaderboard.schema_page`.

- The file's name without `.json` is the entry's key: lower-case letters, digits and hyphens, up to 64 characters.
- K checkpoints, E episodes a checkpoint, R rounds. `*` stands for any key of an object, `[]` for any item of a list.
- Returns are exact: the shortest decimal that gives the same 64-bit number, without `.0`. Seconds are rounded to the
  millisecond, kept fractions to 1e-6.
- All objects have exactly the fields of this page. JSON is read strictly: UTF-8, no key twice, no NaN or infinity.
- `digest` covers everything but `status`, `rerun` and itself: a re-run changes the status and no digest.
- Nothing in a submission is ever run or imported.
- Every schema that was ever accepted stays readable; a change gets a new number.
"""


def page() -> str:
    """SCHEMA.md."""
    blocks = [HEAD]
    for number, record in SCHEMAS.items():
        written = " (written today)" if number == SCHEMA else ""
        rows = [f"| `{name}` | {_form(kind)} | {_about(kind)} |" for name, kind in record.children("")]
        blocks.append(
            "\n".join([f"## {number}{written}\n", "| Field | Form | What it is |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(blocks)


def _form(kind: Kind) -> str:
    if isinstance(kind, Map) and isinstance(kind.of, Record):
        kind = Map(keys=kind.keys, of=Record(fields={}), fewest=kind.fewest, most=kind.most)
    return _escape(kind.describe())


def _about(kind: Kind) -> str:
    if not kind.about and isinstance(kind, Maybe):
        kind = kind.of
    return _escape(kind.about)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("[", "\\[")


def main() -> None:
    """Print the page."""
    print(page(), end="")


if __name__ == "__main__":
    sys.exit(run_command(main))
