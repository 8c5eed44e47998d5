"""Where do a command's numbers go, and which of them are already there?"""

import json
from pathlib import Path
from typing import Any

from harness.cells.cell import file_hashes
from harness.cells.provenance import code_version
from leaderboard.runs.jsonfile import Json
from leaderboard.runs.store import write_json


def settings_of(args: Any, **settings: Any) -> Json:
    """All that can change a finding as JSON keeps it: the command line, what is given here, files and the code."""
    fields = {name: value for name, value in vars(args).items() if name not in ("out", "jobs", "seed", "seeds")}
    fields = {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}
    everything = {**fields, **settings}
    everything |= {"files": file_hashes(everything), "code": code_version()}
    plain: Json = json.loads(json.dumps(everything))
    return plain


def read_finding(path: Path, settings: Json) -> Json | None:
    """The finding in `path` if it was made with the very same settings by unedited code; else None."""
    if settings["code"]["commit"] is None or settings["code"]["dirty"]:
        return None
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("settings") == settings else None


def write_finding(path: Path, finding: Json) -> None:
    """Write a finding whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, finding)
