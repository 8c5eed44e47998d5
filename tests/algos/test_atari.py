"""Atari as its literature has it, frame by frame the same on both backends."""

from typing import Any

import numpy as np
import pytest

from algos.envs import envpool as envpool_envs
from algos.envs.envpool import EnvPoolVectorEnv, Pool
from algos.envs.interface import Backend
from algos.envs.single import make_env
from algos.envs.vector import make_vector_env

both = pytest.mark.parametrize("backend", ["gymnasium", "envpool"])


class WatchedPool(Pool):
    """Keeps what EnvPool tells at a reset but agents don't get to see: the emulator's memory."""

    info: dict[str, Any]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        native_reset = self.envs.reset

        def reset(ids: Any) -> Any:
            obs, self.info = native_reset(ids)
            return obs, self.info

        self.envs.reset = reset


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "ALE/Breakout-v5"])
def test_a_whole_atari_game_step_by_step(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A game from the same random start, found by the emulator's memory: all four frames, rewards, ends, lives."""
    monkeypatch.setattr(envpool_envs, "Pool", WatchedPool)
    envs = EnvPoolVectorEnv(env_id, 1)
    obs = envs.reset([1])
    env = make_env(env_id)
    game: Any = env.unwrapped
    assert isinstance(envs.pool, WatchedPool)
    ours, info = env.reset(seed=0)
    for _ in range(300):
        if (game.ale.getRAM() == envs.pool.info["ram"][0]).all():
            break
        ours, info = env.reset()
    assert (game.ale.getRAM() == envs.pool.info["ram"][0]).all()
    assert (ours == obs[0]).all()
    rng = np.random.default_rng(0)
    over = False
    while not over:
        action = rng.integers(game.action_space.n)
        lives = info["lives"]
        ours, reward, over, cut, info = env.step(action)
        step = envs.step(np.array([action]))
        # The two don't always pool the same frames of a step that the game's end cuts short; nobody looks at them.
        frames = 3 if over else 4
        assert (step.final_obs[0][:frames] == ours[:frames]).all()
        assert (step.rewards[0], step.terminated[0], step.truncated[0]) == (reward, over, cut)
        assert step.life_lost[0] == (info["lives"] < lives and not over)


@both
def test_breakout_s_five_lives(backend: Backend) -> None:
    """Four lives go with the game going on; with the fifth it is over."""
    envs = make_vector_env("ALE/Breakout-v5", 1, None, backend)
    envs.reset([3])
    rng = np.random.default_rng(0)
    lost = games = 0
    for _ in range(600):
        step = envs.step(rng.integers(4, size=1))
        lost += int(step.life_lost[0])
        if step.terminated[0]:
            assert lost == 4
            lost, games = 0, games + 1
        assert not step.truncated[0]
    assert games >= 2
    envs.close()


def test_pong_skips_exactly_four_frames_and_repeats_no_action() -> None:
    env = make_env("ALE/Pong-v5")
    ale = env.unwrapped.ale  # type: ignore[attr-defined]
    assert ale.getFloat("repeat_action_probability") == 0
    obs, _ = env.reset(seed=0)
    starts = {ale.getEpisodeFrameNumber()}
    for _ in range(100):
        obs, _ = env.reset()  # a seed would load the game anew
        starts.add(ale.getEpisodeFrameNumber())
    assert (min(starts), max(starts)) == (1, 30)
    rng = np.random.default_rng(0)
    for _ in range(50):
        frame, before = ale.getFrameNumber(), obs
        obs, _, terminated, truncated, _ = env.step(rng.integers(6))
        assert ale.getFrameNumber() == frame + 4
        assert (obs.shape, obs.dtype) == ((4, 84, 84), np.uint8)
        assert (obs[:3] == before[1:]).all()
        assert not terminated
        assert not truncated
    env.close()
    sticky = make_env("ALE/Pong-v5", {"repeat_action_probability": 0.25})
    assert sticky.unwrapped.ale.getFloat("repeat_action_probability") == 0.25  # type: ignore[attr-defined]


@both
def test_a_pong_game_ends_at_21_points(backend: Backend) -> None:
    """Standing still loses every point; no single one of them ends the episode. Rewards are not clipped."""
    envs = make_vector_env("ALE/Pong-v5", 1, None, backend)
    envs.reset([0])
    points = []
    while True:
        step = envs.step(np.zeros(1, np.int64))
        points.append(float(step.rewards[0]))
        assert not step.life_lost[0]
        if step.terminated[0] or step.truncated[0]:
            break
    assert step.terminated[0]
    assert (sum(points), set(points)) == (-21, {0, -1})
    envs.close()
