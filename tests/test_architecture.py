"""Imports point one way: no circle, no forbidden arrow, no crowded directory, and the picture shows what is."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.checks.architecture import PICTURE, ROOT, stale
from harness.checks.architecture_svg import picture
from harness.checks.imports import MOST_MODULES, faults, find_imports

SVG = "{http://www.w3.org/2000/svg}"


def make(root: Path, sources: dict[str, str]) -> Path:
    """A tree of made-up modules, every folder of them a package."""
    for name, text in sources.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in file.relative_to(root).parents[:-1]:
            (root / folder / "__init__.py").touch()
        file.write_text(text)
    return root


def arrows(root: Path) -> set[tuple[str, str]]:
    return {(one.importer, one.imported) for one in find_imports(root)}


def test_no_circle_no_forbidden_arrow_and_no_crowded_directory() -> None:
    found = faults(ROOT)
    assert not found, "\n".join(["", *found])


def test_the_picture_shows_the_imports_of_today() -> None:
    assert not stale(ROOT)


@pytest.mark.parametrize(
    "deferred",
    [
        "def later():\n    from filters.a import x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from filters.a import x\n",
        "def later():\n    import filters.a\n",
        "def later():\n    from . import a\n",
        "from importlib import import_module\ndef later():\n    return import_module('filters.a')\n",
    ],
)
def test_a_deferred_circle_is_found_and_both_files_named(tmp_path: Path, deferred: str) -> None:
    root = make(tmp_path, {"filters/a.py": "from filters import b\n", "filters/b.py": deferred})
    [found] = faults(root)
    line = len(deferred.splitlines())
    assert found == f"circle: filters/a.py:1 imports filters/b.py, filters/b.py:{line} imports filters/a.py"


def test_a_circle_of_three_is_told_once(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "algos/a.py": "import algos.b\n",
            "algos/b.py": "\nfrom .c import x\n",
            "algos/c.py": "def later():\n    from algos import a\n",
            "algos/d.py": "from algos import a, b, c\n",
        },
    )
    assert faults(root) == [
        "circle: algos/a.py:1 imports algos/b.py, algos/b.py:2 imports algos/c.py, algos/c.py:2 imports algos/a.py"
    ]


def test_a_circle_over_a_package_that_runs_first_is_found(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "harness/run.py": "from harness.cells import cell\n",
            "harness/cells/cell.py": "",
            "harness/cells/__init__.py": "from harness import run\n",
        },
    )
    assert faults(root) == [
        "circle: harness/cells/__init__.py:1 imports harness/run.py, harness/run.py:1 imports harness/cells/__init__.py"
    ]


def test_a_package_that_offers_its_own_modules_is_no_circle(tmp_path: Path) -> None:
    root = make(tmp_path, {"filters/a.py": "", "filters/b.py": "from filters.a import x\n"})
    (root / "filters" / "__init__.py").write_text("from filters.b import x\n")
    assert not faults(root)


@pytest.mark.parametrize(
    ("home", "there", "allowed"),
    [
        ("filters", "algos", "only itself"),
        ("algos", "harness", "only itself and filters"),
        ("algos", "leaderboard", "only itself and filters"),
        ("leaderboard", "harness", "only itself and filters"),
        ("leaderboard", "algos", "only itself and filters"),
    ],
)
def test_a_forbidden_arrow_is_found_and_both_files_named(tmp_path: Path, home: str, there: str, allowed: str) -> None:
    source = f"def later():\n    from {there}.inner.x import y\n"
    root = make(tmp_path, {f"{home}/a.py": source, f"{there}/inner/x.py": "y = 1\n"})
    assert faults(root) == [
        f"forbidden arrow: {home}/a.py:2 imports {there}/inner/x.py, and {home} may import {allowed}"
    ]


@pytest.mark.parametrize(
    ("home", "there"),
    [
        ("algos", "filters"),
        ("leaderboard", "filters"),
        ("harness", "filters"),
        ("harness", "algos"),
        ("harness", "leaderboard"),
    ],
)
def test_an_allowed_arrow_is_none_of_them(tmp_path: Path, home: str, there: str) -> None:
    root = make(tmp_path, {f"{home}/a.py": f"from {there} import x\n", f"{there}/x.py": ""})
    assert not faults(root)


def test_a_name_from_a_package_is_its_module_where_it_has_one(tmp_path: Path) -> None:
    root = make(tmp_path, {"harness/a.py": "from filters import b, NAME\n", "filters/b.py": "", "filters/c.py": ""})
    assert arrows(root) == {("harness.a", "filters"), ("harness.a", "filters.b")}


def test_a_crowded_directory_is_named(tmp_path: Path) -> None:
    files = {f"harness/cells/m{k}.py": "" for k in range(MOST_MODULES)}
    assert not faults(make(tmp_path, files))
    make(tmp_path, {"harness/cells/one_more.py": ""})
    assert faults(tmp_path) == [
        f"crowded: harness/cells/ holds {MOST_MODULES + 1} modules, more than {MOST_MODULES}; make a package of some"
    ]


def test_the_picture_is_the_same_twice_and_different_with_another_arrow(tmp_path: Path) -> None:
    root = make(
        tmp_path,
        {
            "filters/api.py": "",
            "algos/ppo.py": "import filters.api\n",
            "harness/run.py": "from algos import ppo\nfrom harness.cells import cell\n",
            "harness/cells/cell.py": "",
            "leaderboard/report.py": "",
        },
    )
    first = picture(root)
    assert first == picture(root)
    (root / "leaderboard" / "report.py").write_text("from filters import api\n")
    second = picture(root)
    assert second != first
    assert "leaderboard imports filters" in ElementTree.fromstring(second).findtext(f"{SVG}desc", "")


def test_a_missing_and_an_old_picture_are_told(tmp_path: Path) -> None:
    make(tmp_path, {f"{package}/a.py": "" for package in ("filters", "algos", "harness", "leaderboard")})
    assert len(stale(tmp_path)) == 1
    (tmp_path / PICTURE).parent.mkdir()
    (tmp_path / PICTURE).write_text(picture(tmp_path))
    assert not stale(tmp_path)
    (tmp_path / "algos" / "a.py").write_text("from filters import a\n")
    [found] = stale(tmp_path)
    assert "python -m harness.checks.architecture --write" in found
