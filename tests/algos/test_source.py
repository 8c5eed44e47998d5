"""The agents repeat each other on purpose; what is meant to be the same must not drift apart."""

import inspect
import re
from types import ModuleType

import pytest

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid

EVERYWHERE = [
    "layer_init",
    "Batch",
    "columns",
    "ppo_losses",
    "open_objective",
    "gae",
    "open_state",
    "collect",
    "optimizer_step",
    "update",
    "train",
]
MLP = ["mlp"]
DISCRETE = ["sample", "log_prob", "entropy_of"]
OWN = ["Args", "Agent"]
REWARDS = ["training_rewards"]
READING_ORDER = ["Args", "Agent", "ppo_losses", "open_objective", "gae", "train", "main"]
MOST_LINES = 420
"""what one reads in one go; what surrounds the algorithm belongs into algos/training"""


def same(names: list[str], *modules: ModuleType) -> list[tuple[str, ModuleType, ModuleType]]:
    return [(name, modules[0], module) for name in names for module in modules[1:]]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        *same(EVERYWHERE, ppo, ppo_continuous, ppo_minigrid, ppo_atari),
        *same(DISCRETE, ppo, ppo_minigrid, ppo_atari),
        *same(MLP, ppo, ppo_continuous, ppo_minigrid),
        *same(REWARDS, ppo, ppo_continuous, ppo_minigrid),
    ],
)
def test_shared_parts_of_the_agents_are_identical(name: str, one: ModuleType, other: ModuleType) -> None:
    assert inspect.getsource(getattr(one, name)) == inspect.getsource(getattr(other, name))


def definitions(module: ModuleType) -> list[str]:
    things = [
        (name, thing) for name, thing in vars(module).items() if inspect.isfunction(thing) or inspect.isclass(thing)
    ]
    return [name for name, thing in things if thing.__module__ == module.__name__]


@pytest.mark.parametrize("module", [ppo_continuous, ppo_minigrid, ppo_atari])
def test_the_agents_define_the_same_things_in_the_same_order(module: ModuleType) -> None:
    expected = [name for name in definitions(ppo) if name not in MLP or module is not ppo_atari]
    assert definitions(module) == expected


@pytest.mark.parametrize("module", [ppo, ppo_continuous, ppo_minigrid, ppo_atari])
def test_an_agent_reads_from_top_to_bottom(module: ModuleType) -> None:
    source = inspect.getsource(module)
    starts = [re.search(rf"^(class |def )?{name}\b", source, re.MULTILINE) for name in READING_ORDER]
    positions = [start.start() for start in starts if start]
    assert len(positions) == len(READING_ORDER)
    assert positions == sorted(positions)
    assert source.count("\n") <= MOST_LINES


def test_every_part_is_either_compared_or_an_agent_s_own() -> None:
    assert set(definitions(ppo)) == {*EVERYWHERE, *MLP, *DISCRETE, *OWN, *REWARDS}


def test_settings_of_the_same_name_mean_the_same() -> None:
    """Every field of Args has its docstring, and a field that several agents share has one type."""
    shared = {}
    for module in (ppo, ppo_continuous, ppo_minigrid, ppo_atari):
        for name, kind in inspect.get_annotations(module.Args).items():
            if name != "hidden":
                assert shared.setdefault(name, kind) == kind
