"""How is Stable-Baselines3's PPO set up to be the same algorithm on the same task?"""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from filters.errors import UsageError
from harness.tasks.task import Task


class GridTrunk(BaseFeaturesExtractor):
    """The trunk of `algos.ppo_minigrid`; Stable-Baselines3 itself divides images by 255."""

    def __init__(self, observation_space: gym.spaces.Box) -> None:
        super().__init__(observation_space, features_dim=64)
        channels, height, width = observation_space.shape
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 16, 3),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * (height - 4) * (width - 4), 64),
            nn.ReLU(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Features [n, 64] of grids [n, C, H, W]."""
        features: Tensor = self.layers(observations)
        return features


def make_peer(task: Task, make_env: Callable[[], Any], device: str = "cpu") -> PPO:
    """PPO with the task's network, optimizer and hyperparameters."""
    args = task.args
    optimizer: dict[str, Any] = {"optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}}
    if args.optimizer == "adam":
        optimizer = {"optimizer_class": torch.optim.Adam, "optimizer_kwargs": {"eps": args.adam_eps}}
    if isinstance(args.hidden, int):
        raise UsageError(f"there is no peer for {task.id}; leave it out with --task, or say --no-peer")
    hidden = list(args.hidden)
    network: dict[str, Any] = {"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": nn.Tanh}
    if task.agent == "ppo_minigrid":
        network["features_extractor_class"] = GridTrunk
    return PPO(
        "CnnPolicy" if task.agent == "ppo_minigrid" else "MlpPolicy",
        DummyVecEnv([make_env] * args.num_envs),
        learning_rate=args.learning_rate,
        n_steps=args.num_steps,
        batch_size=args.minibatch_size,
        n_epochs=args.update_epochs,
        gamma=args.gamma,
        gae_lambda=args.gae_lambda,
        clip_range=args.clip_coef,
        clip_range_vf=args.clip_coef if args.clip_value_loss else None,
        ent_coef=args.entropy_coef,
        vf_coef=args.value_coef,
        max_grad_norm=args.max_grad_norm or float("inf"),
        policy_kwargs=network | optimizer,
        seed=0,
        device=device,
    )
