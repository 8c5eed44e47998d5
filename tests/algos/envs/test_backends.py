"""Both backends play the same games: step by step where layouts can be matched, in distribution elsewhere."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from minigrid.core.grid import Grid
from minigrid.core.world_object import Door, Goal, Key
from scipy.stats import ks_2samp

from algos.envs import envpool as envpool_envs
from algos.envs.envpool import EnvPoolVectorEnv, Pool
from algos.envs.evaluate import Act, make_evaluator
from algos.envs.interface import Backend, Envs, Step
from algos.envs.single import make_env
from algos.envs.vector import make_vector_env

BACKENDS: tuple[Backend, ...] = ("gymnasium", "envpool")
EVERY = [
    ("CartPole-v1", {}),
    ("Acrobot-v1", {}),
    ("FrozenLake-v1", {}),
    ("MiniGrid-Empty-8x8-v0", {}),
    ("MiniGrid-DoorKey-8x8-v0", {}),
    ("LunarLander-v3", {}),
    ("BipedalWalker-v3", {}),
    ("highway-v0", {"vehicles_count": 10}),
    ("ALE/Pong-v5", {}),
]
every = pytest.mark.parametrize(("env_id", "kwargs"), EVERY, ids=[env_id for env_id, _ in EVERY])


def random_act(space: gym.Space[Any], seed: int) -> Act:
    """The uniformly random policy."""
    rng = np.random.default_rng(seed)
    if isinstance(space, gym.spaces.Box):
        low, high, shape = space.low, space.high, space.shape
        return lambda obs: rng.uniform(low, high, (len(obs), *shape)).astype(np.float32)
    assert isinstance(space, gym.spaces.Discrete)
    actions = int(space.n)
    return lambda obs: rng.integers(actions, size=len(obs))


def stream(envs: Envs, steps: int) -> Iterator[Step]:
    """Random steps from fixed seeds."""
    act = random_act(envs.action_space, 0)
    obs = envs.reset(list(range(10, 10 + envs.num_envs)))
    for _ in range(steps):
        step = envs.step(act(obs))
        obs = step.obs
        yield step


@every
def test_shapes_and_dtypes_are_the_same(env_id: str, kwargs: Any) -> None:
    sides = [make_vector_env(env_id, 2, kwargs, backend) for backend in BACKENDS]
    spaces = [(envs.obs_space.shape, envs.obs_space.dtype, envs.action_space) for envs in sides]
    assert spaces[0] == spaces[1]
    for envs in sides:
        assert envs.obs_space.contains(envs.reset([1, 2])[0])
    looks = [[(array.shape, array.dtype) for step in stream(envs, 2) for array in step] for envs in sides]
    assert looks[0] == looks[1]
    for envs in sides:
        envs.close()


@every
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_seed_twice_is_the_same_to_the_bit(backend: Backend, env_id: str, kwargs: Any) -> None:
    steps = 8 if (env_id, backend) == ("highway-v0", "gymnasium") else 150
    runs = []
    for _ in range(2):
        envs = make_vector_env(env_id, 2, kwargs, backend)
        runs.append([array.tobytes() for step in stream(envs, steps) for array in step])
        envs.close()
    assert runs[0] == runs[1]


@pytest.mark.parametrize("env_id", ["MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-8x8-v0"])
def test_minigrid_empty_step_by_step(env_id: str) -> None:
    """10,000 random actions in 20 environments, so that goals and time limits are among them."""
    sides = [make_vector_env(env_id, 20, None, backend) for backend in BACKENDS]
    ends = np.zeros(2, np.int64)
    for ours, theirs in zip(*(stream(envs, 520) for envs in sides), strict=True):
        assert all(np.allclose(a, b, rtol=1e-6, atol=0) for a, b in zip(ours, theirs, strict=True))
        ends += [ours.terminated.sum(), ours.truncated.sum()]
    assert (ends > 0).all()


class WatchedPool(Pool):
    """Keeps what EnvPool tells at a reset but agents don't get to see."""

    obs: dict[str, Any]
    info: dict[str, Any]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        native_reset = self.envs.reset

        def reset(ids: Any) -> Any:
            self.obs, self.info = native_reset(ids)
            return self.obs, self.info

        self.envs.reset = reset


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envpool_envs, "Pool", WatchedPool)


class Twins:
    """Gymnasium environments in every DoorKey layout that could be the one EnvPool started."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.spare = [make_env(f"MiniGrid-DoorKey-{size}x{size}-v0")]
        self.envs: list[gym.Env[Any, Any]] = []

    def start(self, obs: np.ndarray[Any, Any], position: tuple[int, int], direction: int) -> None:
        """All layouts with the agent there whose first observation is `obs` [7, 7, 3]."""
        self.spare += self.envs
        self.envs = []
        for split, door, key in self.layouts(position):
            env = self.spare.pop() if self.spare else make_env(f"MiniGrid-DoorKey-{self.size}x{self.size}-v0")
            env.reset(seed=0)
            world: Any = env.unwrapped
            world.grid = Grid(self.size, self.size)
            world.grid.wall_rect(0, 0, self.size, self.size)
            world.grid.vert_wall(split, 0)
            world.put_obj(Goal(), self.size - 2, self.size - 2)
            world.put_obj(Door("yellow", is_locked=True), split, door)
            world.put_obj(Key("yellow"), *key)
            world.agent_pos, world.agent_dir = position, direction
            same = (world.gen_obs()["image"] == obs).all()
            (self.envs if same else self.spare).append(env)

    def layouts(self, position: tuple[int, int]) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """Columns of the wall, rows of the door and places of the key, as MiniGrid draws them."""
        for split in range(position[0] + 1, self.size - 2):
            for door in range(1, self.size - 2):
                for x in range(1, split):
                    for y in range(1, self.size - 1):
                        if (x, y) != position:
                            yield split, door, (x, y)

    def step(self, action: int, step: Step) -> None:
        """Take the action everywhere and keep the layouts that answer as EnvPool did."""
        expected = (float(step.rewards[0]), bool(step.terminated[0]), bool(step.truncated[0]))
        staying = []
        for env in self.envs:
            obs, reward, terminated, truncated, _ = env.step(action)
            answer = (float(np.float32(reward)), terminated, truncated and not terminated)
            same = answer == pytest.approx(expected, rel=1e-5) and (obs == step.final_obs[0]).all()
            (staying if same else self.spare).append(env)
        self.envs = staying


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("size", "steps"), [(8, 10_000), (5, 5_000)])
def test_minigrid_doorkey_step_by_step_over_matched_layouts(size: int, steps: int) -> None:
    """Each of EnvPool's episodes is, step by step, the one that Gymnasium plays in some DoorKey layout.

    Layouts can't be set in EnvPool and are seen only in part. So Gymnasium plays on in every layout that fits all that
    was seen so far, and at each episode's end a single one is left. The random walk is drawn towards picking up and
    opening, so that doors are opened and goals reached.
    """
    envs = EnvPoolVectorEnv(f"MiniGrid-DoorKey-{size}x{size}-v0", 1)
    rng = np.random.default_rng(0)
    twins = Twins(size)
    obs = envs.reset([3])
    fresh = True
    opened = goals = limits = 0
    for _ in range(steps):
        assert isinstance(envs.pool, WatchedPool)
        if fresh:
            x, y = envs.pool.info["agent_pos"][0]
            twins.start(obs[0], (int(x), int(y)), int(envs.pool.obs["direction"][0]))
            assert twins.envs, "no layout of MiniGrid's looks like this one"
        action = int(rng.choice(7, p=[0.15, 0.15, 0.35, 0.1, 0.05, 0.15, 0.05]))
        step = envs.step(np.array([action]))
        twins.step(action, step)
        assert twins.envs, "no layout of MiniGrid's answers like this"
        fresh = bool(step.terminated[0] or step.truncated[0])
        assert len(twins.envs) == 1 or not fresh, "the episode told too little to single its layout out"
        goals, limits = goals + int(step.terminated[0]), limits + int(step.truncated[0])
        opened += int((step.final_obs[0, ..., 2] == 0)[step.final_obs[0, ..., 0] == 4].any())
        obs = step.obs
    assert opened > 0
    assert limits > 0
    assert size > 5 or goals > 0


@pytest.mark.parametrize(
    ("env_id", "kwargs", "reference", "native"),
    [
        ("CartPole-v1", {}, 1000, 1000),
        ("Acrobot-v1", {}, 80, 300),
        ("FrozenLake-v1", {}, 1000, 1000),
        ("LunarLander-v3", {}, 300, 1000),
        ("BipedalWalker-v3", {"max_episode_steps": 200}, 60, 300),
        ("highway-v0", {"vehicles_count": 10}, 15, 1000),
        ("MiniGrid-DoorKey-5x5-v0", {}, 60, 1000),
    ],
)
def test_random_episodes_agree_in_distribution(env_id: str, kwargs: Any, reference: int, native: int) -> None:
    """Returns and lengths of random episodes, fewer where Gymnasium is slow; the seeds are fixed, so is the outcome."""
    found = []
    for seed, (backend, episodes) in enumerate(zip(BACKENDS, (reference, native), strict=True)):
        act = random_act(make_vector_env(env_id, 1, kwargs, backend).action_space, seed)
        evaluator = make_evaluator(env_id, kwargs, backend, episodes)
        found.append(evaluator.play(act, np.random.default_rng(seed).integers(2**31, size=episodes).tolist()))
        evaluator.close()
    for ours, theirs in zip(*found, strict=True):
        assert ks_2samp(ours, theirs).pvalue > 0.001
