"""The agents repeat each other on purpose; what is meant to be the same must not drift apart."""

import inspect
from types import ModuleType

import pytest

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid

EVERYWHERE = [
    "layer_init",
    "Batch",
    "normalize",
    "columns",
    "ppo_losses",
    "open_objective",
    "gae",
    "State",
    "open_state",
    "tensor",
    "collect",
    "optimizer_step",
    "update",
    "train",
    "main",
]
MLP = ["mlp"]
DISCRETE = ["sample", "log_prob", "entropy_of"]
OWN = ["Args", "Agent"]
REWARDS = ["training_rewards"]


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


def test_every_part_is_either_compared_or_an_agent_s_own() -> None:
    assert set(definitions(ppo)) == {*EVERYWHERE, *MLP, *DISCRETE, *OWN, *REWARDS}


def test_settings_of_the_same_name_mean_the_same() -> None:
    """Every field of Args has its docstring, and a field that several agents share has one type."""
    shared = {}
    for module in (ppo, ppo_continuous, ppo_minigrid, ppo_atari):
        for name, kind in inspect.get_annotations(module.Args).items():
            if name != "hidden":
                assert shared.setdefault(name, kind) == kind
