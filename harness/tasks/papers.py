"""Which settings did the papers train with? Their tasks, CleanRL's, and the short ones for a first look and for tests.

Changing anything in a task that decides its result means a new version of its id; results of different versions are
never compared.
"""

from typing import Any

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from harness.tasks.task import Task

IIF_PPO: dict[str, Any] = {
    # Hu et al. 2025: Stable-Baselines3 semantics, plain SGD; the code behind the numbers does not clip gradients.
    "num_envs": 1,
    "num_steps": 2048,
    "minibatch_size": 64,
    "update_epochs": 10,
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "anneal_lr": False,
    "clip_value_loss": False,
    "entropy_coef": 0.0,
    "value_coef": 0.5,
    "max_grad_norm": 0.0,
    "hidden": (64, 64),
    "eval_every": 1,
}


def iif_mlp(env_id: str, *, rounds: int, **settings: Any) -> ppo.Args:
    """Settings of the IIF paper for vector observations."""
    return ppo.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | settings))


def iif_minigrid(env_id: str, *, rounds: int, **settings: Any) -> ppo_minigrid.Args:
    """Settings of the IIF paper for MiniGrid: separate 64-64 networks behind the trunk, input / 255."""
    own = {"obs_scale": 255.0, "eval_every": 2}
    return ppo_minigrid.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | own | settings))


def iif_continuous(env_id: str, *, rounds: int, **settings: Any) -> ppo_continuous.Args:
    """Settings of the IIF paper for continuous actions."""
    return ppo_continuous.Args(env_id=env_id, total_steps=2048 * rounds, **(IIF_PPO | settings))


FROZEN_LAKE: dict[str, bool | int | float | str] = {"map_name": "4x4", "is_slippery": False}
DOORKEY = ppo_minigrid.Args(
    env_id="MiniGrid-DoorKey-8x8-v0",
    total_steps=1_000_000,
    num_steps=640,
    minibatch_size=256,
    update_epochs=4,
    optimizer="adam",
    learning_rate=3e-4,
    entropy_coef=0.01,
)
ADAM = {"optimizer": "adam", "adam_eps": 1e-5}
"""Adam as Stable-Baselines3's PPO sets it up"""


def drops(fraction: float, warmup: int = 0) -> dict[str, dict[str, Any]]:
    """IIF's share of the negatives on a task, and the rounds that IIF and DTV let pass at first."""
    late = {name: {"warmup": warmup} for name in ("dtv", "dtv-loo", "dtv-lambda")} if warmup else {}
    return {"iif": {"fraction": fraction} | ({"warmup": warmup} if warmup else {}), **late}


PAPERS = (
    Task(
        id="FrozenLake/v1",
        about="FrozenLake-v1 4x4, not slippery, one-hot; IIF setting, 50 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=50, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="Acrobot/v1",
        about="Acrobot-v1; IIF setting, 50 rounds",
        args=iif_mlp("Acrobot-v1", rounds=50),
        random=-498.4,
        solved=-80.0,
        returns=(-500.0, 0.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="MiniGrid-Empty-8x8/v3",
        about="MiniGrid-Empty-8x8-v0; IIF setting, 40 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=40),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="Highway/v1",
        about="highway-v0 with 10 vehicles; IIF setting, 100 rounds",
        args=iif_mlp("highway-v0", rounds=100, env_kwargs={"vehicles_count": 10}, eval_every=5, eval_episodes=10),
        random=11.40,
        solved=40.0,
        returns=(0.0, 40.0),
        filter_defaults=drops(0.5),
        paper_episodes=100,
    ),
    Task(
        id="LunarLander/v2",
        about="LunarLander-v3; IIF setting, 150 rounds",
        args=iif_mlp("LunarLander-v3", rounds=150, eval_every=4),
        random=-181.7,
        solved=200.0,
        returns=(-10_000.0, 1_000.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="BipedalWalker/v1",
        about="BipedalWalker-v3; IIF setting, Adam 3e-4, 500 rounds",
        args=iif_continuous("BipedalWalker-v3", rounds=500, learning_rate=3e-4, eval_every=5, eval_episodes=10, **ADAM),
        random=-99.4,
        solved=300.0,
        returns=(-2_000.0, 400.0),
        filter_defaults=drops(0.0625),
        paper_episodes=100,
    ),
    Task(
        id="MiniGrid-Empty-8x8-adam/v3",
        about="MiniGrid-Empty-8x8-v0; IIF setting with Adam 3e-4, 40 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=40, learning_rate=3e-4, **ADAM),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="LunarLander-adam/v2",
        about="LunarLander-v3; IIF setting with Adam 1e-3, 150 rounds",
        args=iif_mlp("LunarLander-v3", rounds=150, learning_rate=1e-3, eval_every=4, **ADAM),
        random=-181.7,
        solved=200.0,
        returns=(-10_000.0, 1_000.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="MiniGrid-Empty-8x8-dtv/v1",
        about="MiniGrid-Empty-8x8-v0; DTV setting, 16 environments × 128 steps, 160,000 steps",
        args=ppo_minigrid.Args(),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="MiniGrid-DoorKey-8x8/v1",
        about="MiniGrid-DoorKey-8x8-v0; DTV setting, 16 environments × 640 steps, 1,000,000 steps",
        args=DOORKEY,
        random=0.0108,
        solved=0.97,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125, warmup=5),
    ),
    Task(
        id="Pong/v1",
        about="ALE/Pong-v5, 84×84 frames, no sticky actions; CleanRL's Atari settings, 10,000,000 steps",
        args=ppo_atari.Args(),
        random=-20.32,
        solved=20.0,
        returns=(-21.0, 21.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="CartPole/v2",
        about="CartPole-v1; CleanRL's settings for classic control, 500,000 steps",
        args=ppo.Args(),
        random=22.2,
        solved=500.0,
        returns=(0.0, 500.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="Acrobot-cleanrl/v2",
        about="Acrobot-v1; CleanRL's settings for classic control, 500,000 steps",
        args=ppo.Args(env_id="Acrobot-v1"),
        random=-498.4,
        solved=-80.0,
        returns=(-500.0, 0.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="FrozenLake-quick/v1",
        about="FrozenLake in the IIF setting cut to 20 rounds",
        args=iif_mlp("FrozenLake-v1", rounds=20, env_kwargs=FROZEN_LAKE, eval_episodes=100),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="MiniGrid-Empty-8x8-quick/v3",
        about="MiniGrid-Empty-8x8 in the IIF setting cut to 25 rounds",
        args=iif_minigrid("MiniGrid-Empty-8x8-v0", rounds=25),
        random=0.0944,
        solved=0.96,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
    Task(
        id="smoke-FrozenLake/v1",
        about="two short rounds of FrozenLake, for tests",
        args=iif_mlp(
            "FrozenLake-v1", rounds=1, env_kwargs=FROZEN_LAKE, num_steps=1024, update_epochs=2, eval_episodes=4
        ),
        random=0.0134,
        solved=1.0,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.5),
    ),
    Task(
        id="smoke-MiniGrid/v1",
        about="two short rounds of MiniGrid-Empty-5x5, for tests",
        args=ppo_minigrid.Args(
            env_id="MiniGrid-Empty-5x5-v0",
            total_steps=512,
            num_envs=4,
            num_steps=64,
            update_epochs=2,
            eval_every=1,
            eval_episodes=4,
        ),
        random=0.2015,
        solved=0.95,
        returns=(0.0, 1.0),
        filter_defaults=drops(0.125),
    ),
)
