"""Specs: what they mean, and what is said when they mean nothing."""

from dataclasses import asdict, dataclass

import pytest

from filters.api import Filter
from filters.errors import UsageError
from filters.iif import IIF
from filters.none import NoFilter
from filters.registry import find, make, names, parse, register


def test_a_spec_sets_fields_by_their_type() -> None:
    assert make("iif:fraction=0.25,warmup=5") == IIF(fraction=0.25, warmup=5)
    assert make("none") == NoFilter()


def test_defaults_of_a_task_give_way_to_what_the_spec_says() -> None:
    assert make("iif", {"iif": {"fraction": 0.5}}) == IIF(fraction=0.5)
    assert make("iif:fraction=0.125", {"iif": {"fraction": 0.5}}) == IIF(fraction=0.125)


def test_the_canonical_spec_is_sorted_and_keeps_all_that_was_said() -> None:
    assert str(parse(" iif:warmup=0, fraction=0.125")) == "iif:fraction=0.125,warmup=0"
    assert str(parse("iif")) == "iif"
    assert str(parse("pkg.mod:Cls:b=2,a=1")) == "pkg.mod:Cls:a=1,b=2"


def test_an_import_path_takes_settings_too() -> None:
    assert asdict(make("tests.broken_filters:KeepsCount:count=65")) == {"count": 65}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("iiff", ["unknown filter 'iiff'", "did you mean 'iif'?", "none", "random"]),
        ("", ["unknown filter ''"]),
        ("iif:fractoin=0.5", ["no field 'fractoin'", "did you mean 'fraction'?", "warmup"]),
        ("none:fraction=0.5", ["no field 'fraction'", "there is: nothing"]),
        ("iif:fraction=abc", ["'fraction' takes float, got 'abc'"]),
        ("iif:warmup=1.5", ["'warmup' takes int, got '1.5'"]),
        ("iif:fraction", ["fraction"]),
        ("iif:0.5=", ["no field '0.5'"]),
        ("iif:fraction=0.1,fraction=0.2", ["twice"]),
        ("iif:fraction=1.5", ["fraction must lie in [0, 1], got 1.5"]),
        ("iif:fraction=-0.1", ["fraction must lie in [0, 1]"]),
        ("iif:fraction=nan", ["fraction must lie in [0, 1]"]),
        ("random:fraction=2", ["fraction must lie in [0, 1]"]),
        ("iif:warmup=-1", ["warmup must be 0 or more"]),
        ("random:unit=episode", ["'unit' takes 'record' or 'trajectory', got 'episode'"]),
        ("reward:fraction=-1", ["fraction must lie in [0, 1]"]),
        ("reward:unit=1", ["'unit' takes 'record' or 'trajectory'"]),
        ("td-error:exponent=-0.5", ["exponent must be 0 or more"]),
        ("td-error:exponent=inf", ["exponent must be 0 or more"]),
        ("td-error:fraction=1.1", ["fraction must lie in [0, 1]"]),
        ("advantage:fraction=2", ["fraction must lie in [0, 1]"]),
        ("advantage-error:heuristic=3", ["'heuristic' takes 1 or 2, got '3'"]),
        ("advantage-error:fraction=2", ["fraction must lie in [0, 1]"]),
        ("dtv:min_keep=2", ["min_keep must lie in [0, 1]"]),
        ("dtv:lam=1", ["no field 'lam'"]),
        ("dtv-lambda:lam=-1", ["lam must lie in [0, 1]"]),
        ("dtv-loo:warmup=-2", ["warmup must be 0 or more"]),
        ("i-ppo:warmup=x", ["'warmup' takes int, got 'x'"]),
        ("iif:reference=absent.ref", ["can't read the reference 'absent.ref'"]),
        ("random-matched:of=nope", ["unknown filter 'nope'"]),
        ("random-matched:of=random-matched", ["another filter than random-matched itself"]),
        ("random-matched:of=iif:fraction=2", ["fraction must lie in [0, 1]"]),
        ("random-matched:of=", ["unknown filter ''"]),
        ("no_such_pkg.mod:Cls", ["can't import 'no_such_pkg.mod'", "ModuleNotFoundError"]),
        ("tests.broken_filters:Nothing", ["has no 'Nothing'"]),
        ("tests.broken_filters:NotAFilter", ["is no filter", "filters.api.Filter"]),
        ("tests.broken_filters:CALLS", ["is no filter"]),
        ("tests.broken_filters:KeepsCount:count=x", ["'count' takes int, got 'x'"]),
    ],
)
def test_a_bad_spec_gets_one_sentence(spec: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        make(spec)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_a_name_can_be_registered_once() -> None:
    with pytest.raises(ValueError, match=r"taken by filters\.none\.NoFilter"):

        @register("none")
        @dataclass(frozen=True, kw_only=True)
        class Other(Filter):
            pass

    assert find("none") is NoFilter


def test_names_lists_what_is_built_in() -> None:
    assert {"none", "random", "iif"} <= set(names())
