"""A filter that notes in a file, named by the environment, that it was asked."""

import os
from dataclasses import dataclass

from filters.api import Filter, Objective, Rollout, Selection, keep_all


@dataclass(frozen=True, kw_only=True)
class Counts(Filter):
    def select(self, rollout: Rollout, objective: Objective) -> Selection:
        with open(os.environ["FILTERGYM_COUNTS"], "a", encoding="ascii") as file:
            file.write(f"{rollout.round}\n")
        return keep_all(rollout)
