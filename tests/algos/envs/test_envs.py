"""One record a step, ends told apart, clipping, lives, frames: what every vector environment here promises."""

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from algos.envs import extras
from algos.envs.envpool import EnvPoolVectorEnv, Pool, ended_itself
from algos.envs.interface import Backend
from algos.envs.single import make_env
from algos.envs.vector import VectorEnv, make_vector_env
from filters.errors import UsageError

BACKENDS = ("gymnasium", "envpool")
both = pytest.mark.parametrize("backend", BACKENDS)


def constant(value: int, count: int = 1) -> np.ndarray[Any, Any]:
    return np.full(count, value, np.int64)


class Lives(gym.Env[Any, Any]):
    """Observes the step number; a life goes in every second step, the game is over with the third."""

    observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.number = 0
        return np.zeros(1, np.float32), {"lives": 3}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.number += 1
        lives = 3 - self.number // 2
        return np.full(1, self.number, np.float32), 5.0, lives == 0, False, {"lives": lives}


gym.register(id="Lives-v0", entry_point=Lives)


@both
def test_every_record_is_a_real_step(backend: Backend) -> None:
    """CartPole's physics lead from each record's observation to its final observation, episode ends included.

    A record that was a mere reset, or an observation of the wrong episode, would break the chain.
    """
    envs = make_vector_env("CartPole-v1", 3, {"max_episode_steps": 15}, backend)
    cart = gym.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(0)
    obs = envs.reset([1, 2, 3])
    assert len(np.unique(obs[:, 0])) == 3
    ends = np.zeros(2, np.int64)
    age = np.zeros(3, np.int64)
    for _ in range(300):
        actions = rng.integers(2, size=3)
        step = envs.step(actions)
        age += 1
        for i in range(3):
            cart.reset()
            cart.state = obs[i].astype(np.float64)  # type: ignore[attr-defined]
            led_to, reward, fallen, _, _ = cart.step(int(actions[i]))
            assert np.allclose(step.final_obs[i], led_to, atol=1e-5)
            assert step.rewards[i] == reward == 1
            assert step.terminated[i] == fallen
            assert step.truncated[i] == (age[i] == 15 and not fallen)
        done = step.terminated | step.truncated
        assert (step.obs[~done] == step.final_obs[~done]).all()
        assert (np.abs(step.obs[done]) <= 0.05).all()  # a first observation
        ends += [step.terminated.sum(), step.truncated.sum()]
        age[done] = 0
        obs = step.obs
    assert (ends > 5).all()
    envs.close()


def test_the_step_after_a_reset_is_an_episode_s_first() -> None:
    """EnvPool's own way would be to ignore the action of that step."""
    envs = EnvPoolVectorEnv("CartPole-v1", 2, {"max_episode_steps": 12})
    envs.reset([1, 2])
    assert envs.pool is not None
    elapsed: list[list[int]] = []
    native_step = envs.pool.envs.step

    def step(*arguments: Any) -> Any:
        answer = native_step(*arguments)
        elapsed.append(answer[4]["elapsed_step"].tolist())
        return answer

    envs.pool.envs.step = step
    dones = [envs.step(constant(1, 2)) for _ in range(30)]
    expected = [1, 1]
    for numbers, done in zip(elapsed, dones, strict=True):
        assert numbers == expected
        expected = [1 if ended else n + 1 for n, ended in zip(numbers, done.terminated | done.truncated, strict=True)]
    envs.close()


@both
def test_a_terminal_state_in_the_last_step_is_no_truncation(backend: Backend) -> None:
    """A pole pushed to one side falls in step `fall`; the time limit before, at and after it."""

    def play(limit: int) -> tuple[int, bool, bool]:
        envs = make_vector_env("CartPole-v1", 1, {"max_episode_steps": limit}, backend)
        envs.reset([5])
        for number in range(1, limit + 1):
            step = envs.step(constant(1))
            if step.terminated[0] or step.truncated[0]:
                return number, bool(step.terminated[0]), bool(step.truncated[0])
        raise AssertionError("no end")

    fall, terminated, truncated = play(100)
    assert (terminated, truncated) == (True, False)
    assert play(fall - 1) == (fall - 1, False, True)
    assert play(fall) == (fall, True, False)
    assert play(fall + 1) == (fall, True, False)


@both
def test_a_goal_reached_in_the_last_step_is_no_truncation(backend: Backend) -> None:
    """MiniGrid-Empty-5x5 allows 100 steps: 95 that lead nowhere, then the five to the goal."""
    envs = make_vector_env("MiniGrid-Empty-5x5-v0", 1, None, backend)
    envs.reset([0])
    for action in [0] * 92 + [6] * 3 + [2, 2, 1, 2]:
        step = envs.step(constant(action))
        assert not step.terminated[0]
        assert not step.truncated[0]
    step = envs.step(constant(2))
    assert step.rewards[0] == pytest.approx(0.1)
    assert (step.terminated[0], step.truncated[0]) == (True, False)
    for _ in range(99):
        assert not envs.step(constant(0)).truncated[0]
    step = envs.step(constant(0))
    assert (step.rewards[0], step.terminated[0], step.truncated[0]) == (0, False, True)
    envs.close()


def test_how_envpool_s_ends_at_the_limit_are_told_apart() -> None:
    nothing, paid = np.zeros(2, np.float32), np.array([0, 0.1], np.float32)
    assert ended_itself({}, paid).tolist() == [False, True]
    assert ended_itself({"crashed": np.array([1, 0])}, paid).tolist() == [True, False]
    assert ended_itself({"terminated": np.array([0, 1]), "lives": nothing}, nothing).tolist() == [False, True]


@both
def test_what_was_returned_is_not_changed_later(backend: Backend) -> None:
    envs = make_vector_env("CartPole-v1", 2, {"max_episode_steps": 3}, backend)
    obs = envs.reset([1, 2])
    kept = [(obs, obs.copy())]
    for _ in range(12):
        step = envs.step(constant(0, 2))
        kept += [(array, array.copy()) for array in step]
    assert all((now == then).all() for now, then in kept)
    envs.close()


@both
def test_environment_i_has_seed_i(backend: Backend) -> None:
    def first(seeds: list[int]) -> np.ndarray[Any, Any]:
        envs = make_vector_env("CartPole-v1", len(seeds), None, backend)
        obs = envs.reset(seeds)
        assert (envs.reset(seeds) == obs).all()
        envs.close()
        return obs

    together = first([7, 8, 9])
    assert (together == np.concatenate([first([seed]) for seed in (7, 8, 9)])).all()


@both
@pytest.mark.parametrize("env_id", ["MountainCarContinuous-v0", "BipedalWalker-v3"])
def test_actions_are_clipped_at_the_environment_only(backend: Backend, env_id: str) -> None:
    """The agent sees the true bounds; beyond them an action does what the bound does, rewards included."""

    def play(actions: np.ndarray[Any, Any]) -> list[Any]:
        envs = make_vector_env(env_id, 2, None, backend)
        space = envs.action_space
        assert isinstance(space, gym.spaces.Box)
        assert ((space.low == -1).all(), (space.high == 1).all(), space.dtype) == (True, True, np.float32)
        seen = [envs.reset([1, 2])]
        for _ in range(20):
            step = envs.step(actions)
            seen += [step.final_obs, step.rewards]
        envs.close()
        return seen

    size = 1 if env_id.startswith("Mountain") else 4
    beyond, bound, within = (play(np.full((2, size), value, np.float32)) for value in (7.0, 1.0, 0.5))
    assert all((a == b).all() for a, b in zip(beyond, bound, strict=True))
    assert any((a != b).any() for a, b in zip(within, bound, strict=True))


def test_a_lost_life_is_told_apart_from_the_end_of_the_game() -> None:
    envs = VectorEnv("Lives-v0", 2)
    envs.reset([0, 0])
    steps = [envs.step(constant(0, 2)) for _ in range(12)]
    assert [bool(step.life_lost[0]) for step in steps] == [False, True, False, True, False, False] * 2
    assert [bool(step.terminated[0]) for step in steps] == [False] * 5 + [True] + [False] * 5 + [True]
    assert all(step.rewards.tolist() == [5, 5] for step in steps)


def test_highway_takes_flat_options() -> None:
    env = make_env("highway-v0", {"vehicles_count": 3, "duration": 2})
    assert env.observation_space.shape == (25,)
    env.reset(seed=0)
    road = env.unwrapped
    assert len(road.road.vehicles) == 4  # type: ignore[attr-defined]
    ends = [env.step(1)[2:4] for _ in range(2)]
    assert ends == [(False, False), (False, True)]
    envs = make_vector_env("highway-v0", 1, {"vehicles_count": 3, "duration": 2}, "envpool")
    envs.reset([0])
    assert [bool(envs.step(constant(1)).truncated[0]) for _ in range(4)] == [False, True, False, True]


@both
@pytest.mark.parametrize("env_id", ["NoSuchEnv-v0", "ALE/NoSuchGame-v5", "highway-v99"])
def test_unknown_environments(backend: Backend, env_id: str) -> None:
    with pytest.raises(UsageError, match=re.escape(env_id)):
        make_vector_env(env_id, 1, None, backend)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "4x4"}),
        ("CartPole-v1", {"num_threads": 4}),
        ("MiniGrid-Empty-8x8-v0", {"max_episode_steps": 5}),
        ("ALE/Pong-v5", {"frame_skip": 2}),
    ],
)
def test_options_that_envpool_does_not_have(env_id: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=rf"no option '{next(iter(options))}'.*; use the gymnasium backend"):
        make_vector_env(env_id, 1, options, "envpool")


@pytest.mark.parametrize(
    ("env_id", "options", "backend"),
    [
        ("CartPole-v1", {"nonsense": 1}, "gymnasium"),
        ("highway-v0", {"vehicle_count": 1}, "gymnasium"),
        ("ALE/Pong-v5", {"frameskip": 2}, "gymnasium"),
        ("highway-v0", {"vehicles_count": "many"}, "envpool"),
    ],
)
def test_options_that_make_no_sense(env_id: str, options: dict[str, Any], backend: Backend) -> None:
    with pytest.raises(UsageError, match="can't make"):
        make_vector_env(env_id, 1, options, backend)


@pytest.mark.parametrize(
    ("env_id", "backend", "module", "extra"),
    [
        ("ALE/Pong-v5", "gymnasium", "cv2", "atari"),
        ("BipedalWalker-v3", "gymnasium", "Box2D", "box2d"),
        ("LunarLander-v3", "gymnasium", "Box2D", "box2d"),
        ("highway-v0", "gymnasium", "highway_env", "highway"),
        ("CartPole-v1", "envpool", "envpool", "envpool"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    env_id: str, backend: Backend, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == module else Path())
    with pytest.raises(UsageError, match=re.escape(f"pip install 'filtergym[{extra}]'")):
        make_vector_env(env_id, 1, None, backend)


def test_a_pool_steps_and_resets_any_subset() -> None:
    pool, alone = Pool("CartPole-v1", [4, 5, 6]), Pool("CartPole-v1", [6])
    pool.reset(np.arange(3))
    alone.reset(np.arange(1))
    for _ in range(5):
        pool.step(constant(1), np.array([0]))
        some = pool.step(constant(0, 2), np.array([1, 2]))
        assert (some.obs[1] == alone.step(constant(0), np.arange(1)).obs[0]).all()
    again = pool.reset(np.array([2, 0]))
    assert (again[0] == alone.reset(np.arange(1))[0]).all()
