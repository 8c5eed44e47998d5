"""What is an action really worth? Advantages from futures that are played, or from states that repeat in a rollout."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray

from algos.envs.single import make_env
from filters.api import Rollout
from filters.heuristics import monte_carlo_advantages
from harness.rounds.snapshots import Snapshot, restore
from harness.rounds.training import Training

SIDE_BY_SIDE = 256
"""environments that play futures together, so that the network is called seldom"""
WAVE = 4
"""futures of each value between two looks at the budget"""


@dataclass(frozen=True)
class TrueAdvantages:
    """Monte-Carlo advantages Ā of m records."""

    records: NDArray[np.int64]
    """[m] their numbers in the rollout"""
    advantages: NDArray[np.float64]
    """[m] Ā(s, a) = Q(s, a) − V(s)"""
    errors: NDArray[np.float64] | None
    """[m] standard errors of Ā; None where they can't be told"""
    how: str
    """one sentence: where they come from"""
    futures: int = 0
    """futures played for each Q and each V; 0 for states that repeat"""
    steps: int = 0
    """environment steps of all futures"""


class Start(NamedTuple):
    """Where a future begins."""

    snapshot: Snapshot
    obs: NDArray[Any]
    """[*obs] what the agent sees there"""
    action: Any = None
    """the first action; None: the policy's own"""


@dataclass
class Value:
    """A mean over futures, from one of several starts in turn."""

    starts: list[Start] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def next_starts(self, count: int) -> list[Start]:
        """The starts of the next `count` futures."""
        first = len(self.returns)
        return [self.starts[i % len(self.starts)] for i in range(first, first + count)]

    @property
    def mean(self) -> float:
        """The estimate."""
        return float(np.mean(self.returns))

    @property
    def variance(self) -> float:
        """The squared standard error of the estimate."""
        return float(np.var(self.returns, ddof=1) / len(self.returns))


def play_advantages(
    training: Training,
    rollout: Rollout,
    snapshots: Sequence[Snapshot],
    records: NDArray[np.int64],
    *,
    futures: int = 0,
    budget: int = 400_000,
    seed: int = 0,
    on_progress: Callable[[float], None] = lambda share: None,
) -> TrueAdvantages:
    """Ā(s, a) = mean return of futures that take a in s − mean return of futures from s, under the current policy.

    Returns are discounted with the rollout's γ. A future that a time limit cuts off is closed with the critic's value,
    as in training. Records of the same state share their futures, and so do those of the same state and action; the
    steps that a time limit has counted are no part of the state (the agent does not see them), but each future starts
    from those of a record in the group, taken in turn.

    Args:
        training: whose policy acts and whose critic closes.
        rollout: the rollout of the current policy.
        snapshots: [n] the states before the records' actions.
        records: [m] the records to value.
        futures: futures of each value; 0: as many as `budget` allows, at least 4.
        budget: environment steps to spend, if `futures` is 0.
        seed: seed of the futures' random streams.
        on_progress: told the share that is done.
    """
    values, of_state, of_pair = open_values(rollout, snapshots, records)
    words = np.random.SeedSequence([seed, rollout.round]).generate_state(2)
    player = FuturePlayer(training, rollout.gamma, seed=int(words[0]), act_seed=int(words[1]))
    done = 0
    while done < futures or (not futures and (done == 0 or player.steps * (done + WAVE) / done <= budget)):
        count = min(WAVE, futures - done) if futures else WAVE
        starts = [start for value in values for start in value.next_starts(count)]
        returns = player.play(starts)
        for i, value in enumerate(values):
            value.returns += returns[i * count : (i + 1) * count].tolist()
        done += count
        on_progress(done / futures if futures else min(player.steps / budget, 1.0))
    player.close()
    pairs = [(values[q], values[v]) for q, v in zip(of_pair, of_state, strict=True)]
    return TrueAdvantages(
        records=records,
        advantages=np.array([q.mean - v.mean for q, v in pairs]),
        errors=np.sqrt([q.variance + v.variance for q, v in pairs]) if done > 1 else None,
        how=f"{done} played futures for each Q and each V",
        futures=done,
        steps=player.steps,
    )


def open_values(
    rollout: Rollout, snapshots: Sequence[Snapshot], records: NDArray[np.int64]
) -> tuple[list[Value], list[int], list[int]]:
    """The values to estimate, none twice, and for each record the places of its V and of its Q among them."""
    values: dict[Any, Value] = {}
    of_state: list[int] = []
    of_pair: list[int] = []
    places: dict[Any, int] = {}
    for record in records.tolist():
        snapshot, obs = snapshots[record], rollout.obs[record].cpu().numpy()
        action = rollout.actions[record].cpu().numpy()[()]  # environments take scalars, no arrays of no axis
        for key, start, of in (
            (snapshot.state, Start(snapshot, obs), of_state),
            ((snapshot.state, action.tobytes()), Start(snapshot, obs, action), of_pair),
        ):
            values.setdefault(key, Value()).starts.append(start)
            of.append(places.setdefault(key, len(places)))
    return list(values.values()), of_state, of_pair


class FuturePlayer:
    """Plays futures in environments of its own, many side by side."""

    def __init__(self, training: Training, gamma: float, *, seed: int, act_seed: int) -> None:
        self.training, self.gamma, self.seed = training, gamma, seed
        self.act = training.act(torch.Generator(training.args.device).manual_seed(act_seed))
        self.envs: list[gym.Env[Any, Any]] = []
        self.steps = 0

    def _open(self, count: int) -> None:
        args = self.training.args
        seeds = np.random.SeedSequence(self.seed).generate_state(SIDE_BY_SIDE) >> 1
        while len(self.envs) < min(count, SIDE_BY_SIDE):
            self.envs.append(make_env(args.env_id, args.env_kwargs))
            self.envs[-1].reset(seed=int(seeds[len(self.envs) - 1]))

    def play(self, starts: Sequence[Start]) -> NDArray[np.float64]:
        """The discounted return [m] of one future from each start."""
        self._open(len(starts))
        returns = np.zeros(len(starts))
        waiting = iter(range(len(starts)))
        playing = [Future(env, number, starts[number]) for env, number in zip(self.envs, waiting, strict=False)]
        while playing:
            actions = self.act(np.stack([future.obs for future in playing]))
            for future, action in zip(playing, actions, strict=True):
                future.step(action, self.gamma)
            self.steps += len(playing)
            self._close_truncated([future for future in playing if future.truncated])
            for future in playing:
                returns[future.number] = future.total
            playing = list(go_on(playing, waiting, starts))
        return returns

    def _close_truncated(self, futures: list["Future"]) -> None:
        if futures:
            closing = self.training.values(np.stack([future.obs for future in futures]))
            for future, value in zip(futures, closing, strict=True):
                future.total += future.discount * float(value)

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()


class Future:
    """One future under way."""

    def __init__(self, env: gym.Env[Any, Any], number: int, start: Start) -> None:
        restore(env, start.snapshot)
        self.env, self.number, self.obs, self.first = env, number, start.obs, start.action
        self.total, self.discount = 0.0, 1.0
        self.terminated = self.truncated = False

    def step(self, action: Any, gamma: float) -> None:
        """Take the action, or the given one if it is the first."""
        if self.first is not None:
            action, self.first = self.first, None
        self.obs, reward, self.terminated, truncated, _ = self.env.step(action)
        self.truncated = bool(truncated) and not self.terminated
        self.total += self.discount * float(reward)
        self.discount *= gamma


def go_on(playing: list[Future], waiting: Iterator[int], starts: Sequence[Start]) -> Iterator[Future]:
    """The futures that have not ended, and the next ones in the environments of those that have."""
    for future in playing:
        if not (future.terminated or future.truncated):
            yield future
        elif (number := next(waiting, None)) is not None:
            yield Future(future.env, number, starts[number])


def repeated_advantages(rollout: Rollout, *, possible: bool = False) -> TrueAdvantages:
    """Ā of the records whose state recurs in the rollout with another action; the others have none.

    Mean return of the visits of (s, a) minus mean return of the visits of s, as in `filters.heuristics`. `possible`
    says that futures could have been played instead.
    """
    advantages = monte_carlo_advantages(rollout).double().cpu().numpy()
    states = rollout.obs.flatten(1).unique(dim=0, return_inverse=True)[1]
    actions = rollout.actions.reshape(rollout.n, -1).unique(dim=0, return_inverse=True)[1]
    pairs = torch.stack([states, actions], 1).unique(dim=0)
    recurs = (pairs[:, 0].bincount(minlength=int(states.max()) + 1) > 1)[states]
    records = recurs.nonzero().flatten().cpu().numpy()
    how = f"from states that repeat in the rollout, {len(records)} of {rollout.n} records"
    if not possible:
        how += ", because this environment can't be set to a state"
    return TrueAdvantages(records=records, advantages=advantages[records], errors=None, how=how)
