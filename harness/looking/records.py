"""Which records of a round are shown, and which are valued?"""

import numpy as np
from numpy.typing import NDArray

from harness.rounds.training import Moment


def distinct(moment: Moment, order: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The first `count` records of the order that differ in observation or action."""
    found: dict[bytes, int] = {}
    for record in order.tolist():
        if len(found) == count:
            break
        found.setdefault(pair_of(moment, record), record)
    return np.array(list(found.values()), np.int64)


def pair_of(moment: Moment, record: int) -> bytes:
    """Observation and action of a record, to compare with others."""
    columns = (moment.rollout.obs[record], moment.rollout.actions[record])
    return b"".join(column.cpu().numpy().tobytes() for column in columns)


def spread(moment: Moment, order: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`count` records evenly spaced along the order; all of them if they have at most `count` different states."""
    states = {moment.seen[record].snapshot and moment.seen[record].snapshot.state for record in order.tolist()}
    if len(order) <= count or (None not in states and len(states) <= count):
        return order
    return order[np.linspace(0, len(order) - 1, count).round().astype(np.int64)]
