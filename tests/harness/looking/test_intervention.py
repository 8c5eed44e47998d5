"""Interventions, end to end on a short task, by hand, and what is refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from filters.errors import UsageError
from filters.registry import make
from harness import intervene
from harness.looking.intervention import ARMS, keep_as_many, summarise
from harness.rounds.training import Training
from harness.tasks.catalogue import find_task
from tests.harness.looking.found import check_figures, read, run_on_commit

LAKE = ["--task", "smoke-FrozenLake", "--rounds", "2", "--jobs", "1"]


@dataclass(frozen=True)
class Made:
    """What the command left for one seed and then, with the same words, for two."""

    folder: Path
    said: str
    """in the end"""
    written: tuple[int, int]
    """when the first seed's finding was written, after one seed and after two"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Interventions of a filter that drops much."""
    out = tmp_path_factory.mktemp("interventions")
    words = [*LAKE, "--filter", "iif:fraction=1", "--out", str(out)]
    folder = out / "smoke-FrozenLake-v1" / "iif:fraction=1"
    path = folder / "seed-0" / "interventions.json"
    run_on_commit(intervene.main, [*words, "--seeds", "1"])
    first = path.stat().st_mtime_ns
    said = run_on_commit(intervene.main, [*words, "--seeds", "2"])
    return Made(folder, said, (first, path.stat().st_mtime_ns))


def test_an_intervention_end_to_end(made: Made) -> None:
    assert "Δ test_return: filtered - ordinary" in made.said
    folder = made.folder
    check_figures(folder, {"boxes", "rounds"})
    lines = read(folder / "seed-1" / "interventions.json")["rounds"]
    assert [line["round"] for line in lines] == [1, 2]
    assert len(read(folder / "summary.json")["interventions"]) == 4
    for line in lines:
        assert line["dropped"] > 0
        assert line["filtered"]["optimizer_steps"] == line["random"]["optimizer_steps"]
        assert line["filtered"]["optimizer_steps"] < line["ordinary"]["optimizer_steps"]
        assert len({line[arm]["f_return"] for arm in ARMS}) == 3


def test_finished_seeds_stay(made: Made) -> None:
    assert made.written[0] == made.written[1]
    assert read(made.folder / "summary.json")["seeds"] == [0, 1]


def test_the_rounds_of_an_intervention_are_those_of_plain_training(made: Made) -> None:
    """What the filter would do to training does not carry over, so each round starts from plain PPO's parameters."""
    line = read(made.folder / "seed-0" / "interventions.json")["rounds"][1]
    plain = Training(find_task("smoke-FrozenLake"), make("none"), seed=0)
    plain.update(plain.collect())
    objective = plain.collect().objective
    assert line["before"]["f_return"] == -float(objective.target(objective.params))


def test_a_filter_that_drops_nothing_changes_nothing(tmp_path: Path) -> None:
    assert intervene.main([*LAKE, "--filter", "iif:fraction=0", "--seeds", "3,", "--out", str(tmp_path)]) == 0
    summary = read(tmp_path / "smoke-FrozenLake-v1" / "iif:fraction=0" / "summary.json")
    assert summary["change"]["ordinary"]["f_return"]["mean"] != 0
    assert all(found["interventions"]["mean"] == 0 for found in summary["paired"].values())


def test_the_random_arm_drops_as_many() -> None:
    keep = torch.ones(100, dtype=torch.bool)
    keep[:17] = False
    mask = keep_as_many(keep, seed=1, round=2)
    assert int((~mask).sum()) == 17
    assert not torch.equal(mask, keep)
    assert torch.equal(mask, keep_as_many(keep, seed=1, round=2))
    assert not torch.equal(mask, keep_as_many(keep, seed=1, round=3))


def test_paired_differences_by_hand() -> None:
    def line(number: int, ordinary: float, filtered: float) -> dict[str, Any]:
        arms = {"ordinary": ordinary, "filtered": filtered, "random": 0.0}
        return {"round": number, **{arm: {"f_return": value, "test_return": value} for arm, value in arms.items()}}

    head = {"task": "t", "filter": "iif", "episodes": 1}
    found = summarise(
        [
            head | {"seed": 0, "rounds": [line(1, 1.0, 2.0), line(2, 1.0, 4.0)]},
            head | {"seed": 1, "rounds": [line(1, 0.0, 2.0), line(2, 3.0, 1.0)]},
        ]
    )
    paired = found["paired"]["test_return: filtered - ordinary"]
    differences = [1.0, 3.0, 2.0, -2.0]
    assert paired["interventions"]["mean"] == 1.0
    half = 3.18245 * np.std(differences, ddof=1) / 2
    assert paired["interventions"]["ci"] == pytest.approx([1 - half, 1 + half], abs=1e-4)
    assert paired["seeds"]["mean"] == 1.0
    assert paired["seeds"]["ci"] == pytest.approx([1 - 12.7062, 1 + 12.7062], abs=1e-3), "seed means 2 and 0"
    assert paired["share_below_0"] == 0.25


def test_a_fixed_reference_is_what_f_return_is_measured_on(tmp_path: Path) -> None:
    from filters.gradients.reference import Reference

    other = Training(find_task("smoke-FrozenLake"), make("none"), seed=9)
    records = other.collect().rollout
    params = {name: p.detach() for name, p in other.state.agent.named_parameters()}
    Reference("smoke-FrozenLake/v1", params, records.obs, records.actions, records.advantages).save(tmp_path / "ref")
    spec = f"iif:reference={tmp_path / 'ref'}"
    assert intervene.main([*LAKE, "--filter", spec, "--seeds", "1", "--rounds", "1", "--out", str(tmp_path)]) == 0
    line = read(next(tmp_path.rglob("interventions.json")))["rounds"][0]
    plain = Training(find_task("smoke-FrozenLake"), make("none"), seed=0)
    logprob = plain.collect().objective.logprob(plain.params(dict(plain.state.agent.named_parameters())), records.obs,
                                                records.actions)  # fmt: skip
    assert line["before"]["f_return"] == pytest.approx(float((logprob * records.advantages).mean()))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rounds", "3"], r"round 3 is beyond the task's budget of 2 rounds"),
        (["--episodes", "-1"], "--episodes must be 0"),
        (["--filter", "iif:warmup=1"], "drops nothing in its first 1 rounds"),
        (["--filter", "iif:reference=absent"], "can't read the reference"),
        (["--seeds", "x"], "--seeds takes a number of seeds"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        intervene.main([*LAKE, "--out", str(tmp_path), *words])
