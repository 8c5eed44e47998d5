"""Environments that misbehave: each way gets one sentence that names the environment, the step and what to do."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from algos import ppo, ppo_continuous
from algos.envs import evaluate as evaluation
from algos.envs.evaluate import evaluate
from algos.envs.single import make_env
from algos.envs.vector import make_vector_env
from algos.training.recorder import SilentRecorder
from filters.errors import TrainingError, UsageError
from filters.registry import make
from harness.cells.cell import Cell, take_cell
from harness.tasks.own import named
from harness.tasks.task import Task

AT = 3
"""the step of an episode in which they misbehave"""


class Odd(gym.Env[Any, Any]):
    """Sound for `AT - 1` steps of an episode, then odd in one way."""

    def __init__(self, way: str = "") -> None:
        self.way, self.steps = way, 0
        self.observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        obs = np.zeros(2, np.float32)
        if self.way == "reset raises":
            raise KeyError("nothing here")
        return {"old reset": obs, "None in reset": (None, {})}.get(self.way, (obs, {}))

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs, reward, over = np.zeros(2, np.float32), 1.0, self.steps >= 10
        if self.way == "old step":
            return obs, reward, over, {}
        if self.steps < AT:
            return obs, reward, False, False, {}
        if self.way == "step raises":
            raise RuntimeError("broken leg")
        observed: dict[str, Any] = {
            "NaN observed": np.full(2, np.nan, np.float32),
            "infinity observed": np.array([0, np.inf], np.float32),
            "None observed": None,
            "another shape": np.zeros(3, np.float32),
            "another dtype": np.array(["a", "b"]),
        }
        paid = {
            "NaN paid": np.nan,
            "infinity paid": -np.inf,
            "None paid": None,
            "two paid": np.ones(2),
            "array": np.ones(1),
        }
        return observed.get(self.way, obs), paid.get(self.way, reward), over and self.way != "endless", False, {}


WAYS = {
    "reset raises": "raised KeyError in reset .'nothing here'., step 0 of an episode: mend the environment",
    "old reset": "returned no pair of observation and info from reset, step 0 .* shimmy",
    "None in reset": "observed None in reset",
    "step raises": "raised RuntimeError in step .broken leg., step 3 of an episode",
    "old step": "returned no five values from step, step 1 .* shimmy",
    "NaN observed": "observed NaN or infinity in step, step 3",
    "infinity observed": "observed NaN or infinity in step, step 3",
    "None observed": "observed None in step, step 3",
    "another shape": r"observed an array of shape \(3,\) in step but declares \(2,\), step 3",
    "another dtype": "observed <U1 in step but declares float32, step 3",
    "NaN paid": "paid nan, step 3 .* mend its rewards",
    "infinity paid": "paid -inf, step 3",
    "None paid": "paid None, step 3 .* one number",
    "two paid": r"paid an array of shape \(2,\), step 3",
}


@pytest.fixture(autouse=True)
def registered() -> Any:
    gym.register("test/Odd-v0", entry_point=Odd)
    yield
    del gym.registry["test/Odd-v0"]


def settings(way: str) -> ppo.Args:
    return ppo.Args(
        env_id="test/Odd-v0", env_kwargs={"way": way}, total_steps=64, num_envs=2, num_steps=16, minibatch_size=16
    )


@pytest.mark.parametrize(("way", "sentence"), WAYS.items())
def test_every_misbehaviour_is_one_sentence(way: str, sentence: str) -> None:
    with pytest.raises(TrainingError, match=sentence) as caught:
        ppo.train(settings(way), make("none"), SilentRecorder())
    assert str(caught.value).startswith("environment 'test/Odd-v0' ")
    assert "learning rate" not in str(caught.value)


@pytest.mark.parametrize("way", ["", "array"])
def test_a_sound_one_trains_and_a_reward_of_size_one_is_a_number(way: str) -> None:
    recorder = SilentRecorder()
    ppo.train(settings(way), make("iif"), recorder)
    assert len(recorder.rounds) == 2


def test_under_the_harness_the_cell_fails_with_the_sentence(tmp_path: Path) -> None:
    task = Task("Odd", "", settings("step raises"), random=0.0, solved=1.0, returns=(0.0, 10.0))
    outcome = take_cell(Cell(named(task, "Odd"), "none", 0, tmp_path), lambda done, rounds: None)
    assert outcome.error is not None
    assert "raised RuntimeError in step (broken leg), step 3" in outcome.error


def test_an_episode_without_end_is_cut_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluation, "LONGEST", 50)
    env = make_env("test/Odd-v0", {"way": "endless"})
    returns, lengths = evaluate(lambda obs: np.zeros(len(obs), np.int64), [env], [0, 1])
    assert lengths.tolist() == [50, 50]
    assert returns.tolist() == [50.0, 50.0]
    assert "had not ended after 50 steps" in capsys.readouterr().err


def test_an_id_without_its_package_says_how_to_write_it() -> None:
    with pytest.raises(UsageError, match="my_package:my/Env-v0"):
        make_env("nowhere/Env-v0")


class Told(gym.Env[Any, Any]):
    """Remembers the actions that it is given."""

    def __init__(self, space: gym.Space[Any], obs: gym.Space[Any] | None = None) -> None:
        self.action_space = space
        self.observation_space = obs or gym.spaces.Box(-1, 1, (2,), np.float32)
        self.told: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(0)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.told.append(action)
        return self.observation_space.sample(), 0.0, len(self.told) % 20 == 0, False, {}


def told(space: gym.Space[Any], obs: gym.Space[Any] | None = None) -> Any:
    gym.register("test/Told-v0", entry_point=lambda: Told(space, obs))
    try:
        return make_env("test/Told-v0")
    finally:
        del gym.registry["test/Told-v0"]


def test_numbered_actions_begin_where_the_environment_says() -> None:
    env = told(gym.spaces.Discrete(3, start=-1))
    assert env.action_space == gym.spaces.Discrete(3)
    env.reset()
    for action in (np.int64(0), np.int64(2)):
        env.step(action)
    assert env.unwrapped.told == [-1, 1]


def test_whole_numbers_are_rounded_and_cast() -> None:
    env = told(gym.spaces.Box(np.array([0, -5], np.int32), np.array([10, 5], np.int32), dtype=np.int32))
    assert env.action_space.dtype == np.float32
    env.reset()
    env.step(np.array([3.6, -9.0], np.float32))
    assert env.unwrapped.told[0].tolist() == [4, -5]
    assert env.unwrapped.told[0].dtype == np.int32


def test_agents_train_on_them() -> None:
    for space, module in (
        (gym.spaces.Discrete(3, start=5), ppo),
        (gym.spaces.Box(0, 9, (2,), np.int64), ppo_continuous),
    ):
        gym.register("test/Told-v0", entry_point=lambda space=space: Told(space))
        try:
            args: Any = module.Args(env_id="test/Told-v0", total_steps=64, num_envs=2, num_steps=16, minibatch_size=16)
            module.train(args, make("dtv"), SilentRecorder())
        finally:
            del gym.registry["test/Told-v0"]


def test_dicts_and_tuples_are_flattened() -> None:
    box = gym.spaces.Box(-1, 1, (2,), np.float32)
    for space in (
        gym.spaces.Dict({"a": box, "b": gym.spaces.Discrete(3)}),
        gym.spaces.Tuple((box, gym.spaces.Discrete(3))),
    ):
        env = told(gym.spaces.Discrete(2), space)
        assert env.observation_space.shape == (5,)
        assert env.reset()[0].shape == (5,)


def test_other_actions_are_refused_by_name() -> None:
    gym.register("test/Told-v0", entry_point=lambda: Told(gym.spaces.MultiDiscrete([2, 3])))
    try:
        envs = make_vector_env("test/Told-v0", 1)
        with pytest.raises(UsageError, match="takes vectors and discrete actions"):
            ppo.Agent(envs.obs_space, envs.action_space, ppo.Args(env_id="test/Told-v0"))
    finally:
        del gym.registry["test/Told-v0"]
