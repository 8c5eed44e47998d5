"""One real complete cell, made once and copied for each test that damages it."""

import shutil
from pathlib import Path

import pytest

from harness.cells.cell import Cell, Outcome, take_cell
from harness.sweeps.plan import with_compile
from harness.tasks.catalogue import find_task


def real_cell(out: Path) -> Cell:
    """The cell that `real_runs` holds, as `harness.run` makes it."""
    return Cell(with_compile(find_task("smoke-FrozenLake"), "cpu", "auto"), "random", 0, out)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one complete cell."""
    out = tmp_path_factory.mktemp("pristine")
    assert take_cell(real_cell(out), lambda done, rounds: None) == Outcome()
    return out


@pytest.fixture
def real_runs(pristine: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    out = tmp_path / "runs"
    shutil.copytree(pristine, out)
    return out


@pytest.fixture
def real_path(real_runs: Path) -> Path:
    """The folder of its one cell."""
    return real_cell(real_runs).path
