"""A few kills of the fault campaign; `python -m harness.checks.faults` makes more."""

import os
from collections import Counter
from pathlib import Path

import pytest

from filters.errors import UsageError
from harness.checks import faults
from harness.checks.faults import Args, Campaign, campaign


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/task").is_dir(), reason="workers are found in /proc")
def test_five_kills_lose_nothing(tmp_path: Path) -> None:
    args = Args(kills=5, filter=("random",), seeds=1, longest=2.0, out=tmp_path / "out")
    done = campaign(args)
    assert done.problems == []
    assert done.kills.total() == 5
    assert len(done.finished) == 4 * done.laps
    assert done.sweeps >= 5


def test_the_campaign_sees_what_is_lost_and_what_is_run_twice(pristine: Path, real_runs: Path) -> None:
    going = Campaign(Args(), faults.random.Random(0))
    going.look(real_runs)
    going.judge(real_runs, faults.results(pristine))
    assert going.problems == []
    (run,) = real_runs.rglob("run.json")
    text = run.read_text()
    run.unlink()
    going.look(real_runs)
    going.judge(real_runs, faults.results(pristine))
    assert [problem.rpartition(" ")[2] for problem in going.problems] == ["more", "missing"]
    run.write_text(text)
    going.look(real_runs)
    assert going.problems[-1].endswith("was run again after it was complete")
    assert going.kills == Counter()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists; delete it"):
        campaign(Args(out=tmp_path))
