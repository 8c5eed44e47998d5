"""Where do episodes end in a stream of steps, and what did they earn?"""

import numpy as np
from numpy.typing import NDArray

from algos.envs.interface import Step


def fragments(done: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the trajectory fragments of a rollout: each environment's stream is cut after every episode end.

    Args:
        done: [T, N] True where an episode ended.

    Returns:
        [T, N] numbers 0..U-1, ascending in time within an environment and environment by environment.
    """
    ended = np.concatenate([np.zeros_like(done[:1]), done[:-1]]).cumsum(axis=0, dtype=np.int64)
    count = ended[-1] + 1
    return ended + (count.cumsum() - count)


def end_episodes(running: NDArray[np.float64], step: Step) -> list[float]:
    """Add a step's rewards to the returns of the episodes under way, and take out those that the step ended.

    Args:
        running: [N] sums of rewards so far; changed in place, zero where an episode ended.
        step: what the environments answered. A lost life ends no episode.

    Returns:
        the returns of the episodes that ended, in the order of the environments.
    """
    running += step.rewards
    over = step.terminated | step.truncated
    ended: list[float] = running[over].tolist()
    running[over] = 0
    return ended
