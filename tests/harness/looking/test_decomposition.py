"""DTV's terms, end to end on a short task against the filters' own scores."""

from pathlib import Path

import numpy as np
import pytest
import torch

from filters.dtv import DTV, DTVLoo
from filters.errors import UsageError
from filters.registry import make
from harness import decompose
from harness.rounds.training import Training
from harness.tasks.catalogue import find_task
from tests.harness.looking.found import check_figures, read


def test_a_decomposition_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert decompose.main(["--task", "smoke-MiniGrid", "--rounds", "2", "--out", str(tmp_path)]) == 0
    assert "disputed" in capsys.readouterr().out
    folder = tmp_path / "smoke-MiniGrid-v1" / "dtv-loo" / "seed-0"
    check_figures(folder, {"rounds", "trajectories"})
    found = read(folder / "terms.json")
    training = Training(find_task("smoke-MiniGrid"), make("dtv-loo"), seed=0)
    for line in found["rounds"]:
        moment = training.collect()
        dtv = DTV().score(moment.rollout, moment.objective).scores
        loo = DTVLoo().score(moment.rollout, moment.objective).scores
        assert isinstance(dtv, torch.Tensor)
        assert isinstance(loo, torch.Tensor)
        units = line["units"]
        np.testing.assert_allclose(np.add(units["self"], units["cross"]), dtv, rtol=1e-4, atol=1e-9)
        assert units["disputed"] == ((dtv >= 0) & (loo < 0)).nonzero().flatten().tolist()
        assert line["kept"]["dtv"] == pytest.approx(float((dtv >= 0).float().mean()))
        assert line["kept"]["dtv-loo"] == pytest.approx(float((loo >= 0).float().mean()))
        assert line["kept_records"]["dtv-loo"] == pytest.approx(line["kept"]["training filter"])
        assert sum(units["length"]) == moment.rollout.n
        training.update(moment)


def test_bad_input_of_a_decomposition(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="beyond the task's budget"):
        decompose.main(["--task", "smoke-MiniGrid", "--rounds", "4", "--out", str(tmp_path)])
