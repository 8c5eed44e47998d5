"""The agents repeat each other on purpose; what is meant to be the same must not drift apart."""

import inspect

import pytest

from algos import ppo, ppo_minigrid

SAME = [
    "mlp",
    "layer_init",
    "Batch",
    "normalize",
    "columns",
    "act",
    "log_prob",
    "ppo_losses",
    "open_objective",
    "gae",
    "State",
    "open_state",
    "tensor",
    "collect",
    "update",
    "train",
    "main",
]


@pytest.mark.parametrize("name", SAME)
def test_shared_parts_of_the_agents_are_identical(name: str) -> None:
    assert inspect.getsource(getattr(ppo, name)) == inspect.getsource(getattr(ppo_minigrid, name))


def test_the_agents_define_the_same_things_in_the_same_order() -> None:
    def order(module: object) -> list[str]:
        here = [
            (name, thing) for name, thing in vars(module).items() if inspect.isfunction(thing) or inspect.isclass(thing)
        ]
        return [name for name, thing in here if thing.__module__ == module.__name__]  # type: ignore[attr-defined]

    assert order(ppo) == order(ppo_minigrid)
    assert set(order(ppo)) == {*SAME, "Args", "Agent"}
