"""Where does each kind of randomness come from, so that a filter's draws change nothing else?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch

Stream = Literal["network", "environment", "action", "minibatch", "filter", "evaluation", "corruption"]
STREAMS: tuple[Stream, ...] = ("network", "environment", "action", "minibatch", "filter", "evaluation", "corruption")


def seed_sequences(seed: int) -> dict[Stream, np.random.SeedSequence]:
    """One independent seed sequence a purpose, spawned from the run's seed; the order of STREAMS never changes."""
    children = np.random.SeedSequence(seed).spawn(len(STREAMS))
    return dict(zip(STREAMS, children, strict=True))


def at_round(sequence: np.random.SeedSequence, round: int) -> np.random.SeedSequence:
    """A sequence of its own for that round, the same however often others were spawned before."""
    return np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, round))


@contextmanager
def network_stream(seed: int) -> Iterator[None]:
    """A network made within draws its weights from the run's own stream; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed_sequences(seed)["network"].generate_state(1)[0]))
        yield


def generator(sequence: np.random.SeedSequence, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded from the sequence."""
    return torch.Generator(device).manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> 1))


def sub_seeds(sequence: np.random.SeedSequence, count: int) -> list[int]:
    """`count` environment seeds in [0, 2³¹); unlike seed, seed + 1, … they are not shared by neighbouring runs."""
    return [int(word) for word in sequence.generate_state(count, np.uint32) >> 1]
