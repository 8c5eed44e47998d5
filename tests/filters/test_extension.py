"""Filters from outside: a package with an entry point, and what is said when one is broken or its name is taken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "outside_package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the outside package installed into it."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for file in PACKAGE.glob("*.*"):
        (source / file.name).write_text(file.read_text())
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder), str(source)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=120)
    return folder


def python(*words: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{Path.cwd()}"}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, env=environment)


def test_an_installed_package_brings_a_filter(site: Path, tmp_path: Path) -> None:
    assert "long-episodes" in python("-m", "harness.run", "--list", path=site).stdout
    checked = python("-m", "filters.check", "long-episodes:least=3", path=site)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    words = ["--filter", "long-episodes:least=3", "--task", "smoke-FrozenLake", "--seeds", "1", "--out", str(tmp_path)]
    done = python("-m", "harness.run", *words, path=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "long-episodes:least=3" in done.stdout
    wrong = python("-m", "filters.check", "long-episode", path=site)
    assert "did you mean 'long-episodes'" in wrong.stderr


def entry_points(folder: Path, *lines: str) -> Path:
    info = folder / "some_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[filtergym.filters]", *lines]))
    return folder


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("mine = no_such_module:Filter", "filter 'mine' of the installed package entry point 'no_such_module:Filter'"),
        ("mine = pathlib:Path", "'mine' is no filter"),
        ("iif = pathlib:Path", "two filters are called 'iif': filters.iif:IIF and pathlib:Path"),
    ],
)
def test_a_broken_entry_point_gets_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    done = python("-m", "filters.check", "mine", path=entry_points(tmp_path, line))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
