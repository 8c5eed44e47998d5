"""What a finding is known by: every setting, the content of files, and the code that it began with."""

from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest

from harness import decompose, intervene
from harness.looking import findings
from tests.harness.looking.found import read


def test_another_file_under_the_same_name_is_another_setting(tmp_path: Path) -> None:
    (tmp_path / "ref").write_text("one")
    args = intervene.Args()
    first = findings.settings_of(args, filter_fields={"reference": str(tmp_path / "ref")})
    (tmp_path / "ref").write_text("two")
    second = findings.settings_of(args, filter_fields={"reference": str(tmp_path / "ref")})
    assert {key for key in first if first[key] != second[key]} == {"files"}


@pytest.mark.parametrize(("main", "name"), [(intervene.main, "interventions.json"), (decompose.main, "terms.json")])
def test_a_finding_names_the_code_that_it_began_with(
    main: Callable[[list[str]], int], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that is committed meanwhile did not make it."""
    commits = chain(["before"], repeat("after"))
    monkeypatch.setattr(findings, "code_version", lambda: {"commit": next(commits), "dirty": False})
    assert main(["--task", "smoke-FrozenLake", "--rounds", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert read(next(tmp_path.rglob(name)))["settings"]["code"]["commit"] == "before"
