"""Steps a second of both backends: a row for every environment and size, a dash where one can't run."""

import pytest

from harness.bench import envs


def test_bench_envs_prints_one_row_an_environment_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    envs.main(["--env", "Acrobot-v1", "FrozenLake-v1", "--seconds", "0.01", "--repeats", "1"])
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    names = {row[0].strip() for row in rows}
    assert {row[1].strip() for row in rows} >= {"1", "16"}
    assert names == {"Acrobot-v1", "FrozenLake-v1 is_slippery=False, map_name=4x4"}
    for name, _, reference, native, ratio in rows:
        assert float(reference.replace(",", "")) > 0
        runs_natively = name.strip() == "Acrobot-v1"
        assert (native.strip() != "–", ratio.strip() != "–") == (runs_natively, runs_natively)
