"""What a command has left in its folder, and how it is run where findings may be used again."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from harness.looking import findings

LAKE = ["--task", "smoke-FrozenLake", "--budget", "3000"]
"""the task of most diagnoses"""


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def check_figures(folder: Path, names: set[str]) -> None:
    """Every figure is a picture with words beside it."""
    assert {path.stem for path in folder.glob("*.png")} == names
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert len(path.with_suffix(".txt").read_text().split()) > 10


def run_on_commit(main: Callable[[list[str]], int], words: list[str], *, edited: bool = False) -> str:
    """What a command prints, as if its code were that of a commit, edited or not; it has to succeed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as said:
        patch.setattr(findings, "code_version", lambda: {"commit": "abc", "dirty": edited})
        assert main(words) == 0
    return said.getvalue()
