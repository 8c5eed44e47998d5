"""Which records are made harmful on purpose, so that one can ask whether a filter finds them?

The agent and the filter never learn which; the recorder does. Evaluation is never touched.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from algos.training.streams import at_round
from filters.errors import UsageError

Kind = Literal["none", "advantage-flip", "advantage-noise", "reward-flip", "reward-shuffle", "action-relabel"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOISE = 3.0
"""standard deviation of `advantage-noise`, in standard deviations of the rollout's advantages"""


@dataclass(frozen=True)
class Corruption:
    """What is corrupted and how much of it; `kind:fraction` in a task's id and on the command line.

    - `advantage-flip`: Â becomes −Â on floor(fraction · n) records; value targets stay as they were
    - `advantage-noise`: Â + 3 sd(Â) · N(0, 1) on as many records; value targets stay
    - `reward-flip`: the rewards of floor(fraction · U) trajectories change sign, before advantages are computed
    - `reward-shuffle`: the rewards of as many trajectories change places in time, before advantages are computed
    - `action-relabel`: on floor(fraction · n) records the stored action is another than the one taken

    A record counts as corrupted where something about it changed: a trajectory without any reward stays clean.
    """

    kind: Kind = "none"
    fraction: float = 0.0

    @staticmethod
    def parse(text: str) -> "Corruption":
        """`reward-flip:0.2` as a corruption; `none` is none. Raises UsageError."""
        kind, _, number = text.partition(":")
        if kind not in KINDS:
            raise UsageError(
                f"unknown corruption {text!r}; there is KIND:FRACTION with {', '.join(KINDS[1:])}, or none"
            )
        try:
            fraction = float(number or 0)
        except ValueError:
            fraction = float("nan")
        if not 0 <= fraction <= 1 or (kind == "none") != (not number):
            raise UsageError(f"a corruption is none or KIND:FRACTION with a fraction in [0, 1], got {text!r}")
        return Corruption(kind, fraction)

    def open(self, sequence: np.random.SeedSequence, round: int, trajectory: NDArray[np.int64]) -> "Corrupted":
        """The corruption of one rollout, drawn from the run's seed and the round alone.

        Args:
            sequence: the run's stream for corruption.
            round: 0-based.
            trajectory: [T, N] numbers of the trajectory fragments, 0..U-1.
        """
        return Corrupted(self, np.random.default_rng(at_round(sequence, round)), trajectory)


class Corrupted:
    """One rollout's corruption: each method changes what its kind is about and leaves all else as it is."""

    def __init__(self, corruption: Corruption, rng: np.random.Generator, trajectory: NDArray[np.int64]) -> None:
        self.kind, self.fraction, self.rng, self.trajectory = corruption.kind, corruption.fraction, rng, trajectory
        self.marks = np.zeros(trajectory.shape, np.bool_)
        """[T, N] True where a record was changed"""

    def actions(self, actions: NDArray[Any], space: gym.Space[Any]) -> NDArray[Any]:
        """[T, N, *act] the actions to store."""
        if self.kind != "action-relabel":
            return actions
        chosen = self._records()
        stored = actions.copy()
        if isinstance(space, gym.spaces.Discrete):
            stored[chosen] += self.rng.integers(1, max(space.n, 2), size=int(chosen.sum()))
            stored[chosen] %= space.n
        else:
            assert isinstance(space, gym.spaces.Box)
            low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
            stored[chosen] = self.rng.uniform(low, high, size=stored[chosen].shape)
        return self._marked(actions, stored)

    def rewards(self, rewards: NDArray[Any]) -> NDArray[Any]:
        """[T, N] the rewards to learn from."""
        if self.kind not in ("reward-flip", "reward-shuffle"):
            return rewards
        count = int(self.trajectory.max()) + 1
        changed = rewards.copy()
        for unit in self.rng.permutation(count)[: int(self.fraction * count)]:
            within = self.trajectory == unit
            changed[within] = -rewards[within] if self.kind == "reward-flip" else self.rng.permutation(rewards[within])
            self.marks |= within & bool((changed != rewards)[within].any())
        return changed

    def advantages(self, advantages: NDArray[Any]) -> NDArray[Any]:
        """[T, N] the advantages to learn from."""
        if self.kind not in ("advantage-flip", "advantage-noise"):
            return advantages
        chosen = self._records()
        noise = NOISE * advantages.std() * self.rng.standard_normal(advantages.shape)
        harmful = -advantages if self.kind == "advantage-flip" else advantages + noise
        return self._marked(advantages, np.where(chosen, harmful, advantages).astype(advantages.dtype))

    def _records(self) -> NDArray[np.bool_]:
        """[T, N] a random floor(fraction · n) of the records."""
        chosen = np.zeros(self.marks.size, np.bool_)
        chosen[self.rng.permutation(chosen.size)[: int(self.fraction * chosen.size)]] = True
        return chosen.reshape(self.marks.shape)

    def _marked(self, before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        different = before != after
        self.marks |= different.reshape(*self.marks.shape, -1).any(-1)
        return after
