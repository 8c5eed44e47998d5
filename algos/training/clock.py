"""How long does each phase of a run take?"""

import time
from typing import Literal

Phase = Literal["startup", "environment", "inference", "filter", "update", "evaluation", "logging"]
PHASES: tuple[Phase, ...] = ("startup", "environment", "inference", "filter", "update", "evaluation", "logging")
TRAINING: tuple[Phase, ...] = ("environment", "inference", "filter", "update")
"""the phases that count as training time; startup (which compiles), evaluation and logging are measured but left out"""


class Clock:
    """A stopwatch with one lap at a time: `start(phase)` books the time since the last call on the phase before."""

    def __init__(self) -> None:
        self.seconds: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
        self._phase: Phase = "logging"
        self._since = time.perf_counter()

    def start(self, phase: Phase) -> None:
        """End the running phase and begin `phase`."""
        now = time.perf_counter()
        self.seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now

    @property
    def training_seconds(self) -> float:
        """Seconds of environment, inference, filter and update so far."""
        return sum(self.seconds[phase] for phase in TRAINING)
