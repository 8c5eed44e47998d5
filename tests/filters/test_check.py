"""The contract: every registered filter keeps it, and every clause can fail."""

import re
import subprocess
import sys

import pytest
import torch

from filters.check import CLAUSES, check_filter
from filters.cost import peak_memory
from filters.registry import names

BROKEN = {
    "Raises": ("answer", "raised ZeroDivisionError in round 0"),
    "NaNScores": ("answer", "returned 256 NaN scores"),
    "WrongLength": ("answer", "keep of shape [255]"),
    "WrongScoreLength": ("answer", "scores of shape [256]; expected [8]"),
    "IntegerIndices": ("answer", "keep as torch.int64"),
    "NoSelection": ("answer", "returned Tensor"),
    "ChangesInputs": ("inputs unchanged", "changed advantages in place"),
    "GlobalRandomness": ("global random state", "the global random state of python"),
    "Remembers": ("deterministic", "two answers to one rollout"),
    "KeepsNothing": ("keeps something", "kept none of 256 records"),
    "NeedsTwoTrajectories": ("one trajectory", "nothing to compare"),
    "NeedsLongTrajectories": ("one-record trajectories", "64 NaN scores of 64"),
    "DividesBySpread": ("equal advantages", "256 NaN scores"),
    "TrustsTheLoss": ("non-finite gradient", "NaN scores"),
}


@pytest.mark.parametrize("name", names())
def test_every_registered_filter_keeps_the_contract(name: str) -> None:
    assert check_filter(name) == {}


@pytest.mark.parametrize("spec", ["iif:fraction=0", "iif:fraction=1", "iif:warmup=3", "random:fraction=0.5"])
def test_it_holds_at_the_edges_of_the_fields(spec: str) -> None:
    assert check_filter(spec) == {}


@pytest.mark.filterwarnings("ignore:std():UserWarning")  # what the broken filter stumbles over
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_filter_fails_its_clause_with_the_right_message(name: str) -> None:
    clause, message = BROKEN[name]
    assert message in check_filter(f"tests.broken_filters:{name}")[clause]


def test_every_clause_is_reached_by_a_broken_filter() -> None:
    assert {clause for clause, _ in BROKEN.values()} == set(CLAUSES)


@pytest.mark.parametrize(
    ("name", "code", "line"), [("iif", 0, "ok    deterministic"), ("KeepsNothing", 1, "FAIL  keeps")]
)
def test_the_command_prints_a_line_a_clause(name: str, code: int, line: str) -> None:
    spec = name if name == "iif" else f"tests.broken_filters:{name}"
    done = subprocess.run([sys.executable, "-m", "filters.check", spec], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert line in done.stdout
    assert sum(line.startswith(("ok", "FAIL")) for line in done.stdout.splitlines()) == len(CLAUSES)
    assert re.search(
        r"cost on 2,048 records: [\d.]+ ms \([\d.]+ forward and backward passes\), [\d.]+ MiB", done.stdout
    )


def test_memory_is_what_a_call_holds_at_its_peak() -> None:
    """A call that fills 64 MiB and lets go again needs about that much, one that does nothing needs nothing."""
    assert 60 < peak_memory(lambda: torch.ones(16 * 2**20)) < 70
    assert peak_memory(lambda: None) < 1
