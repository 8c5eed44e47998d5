"""Do the agents still learn as they did? The first rounds of each, kept with the versions that made them.

scripts/rebaseline            show what would change
scripts/rebaseline --write    and write it, for a reviewer to see in the diff
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import tyro

from algos import ppo, ppo_atari, ppo_continuous, ppo_minigrid
from algos.training.recorder import SilentRecorder
from filters.errors import run_command
from filters.registry import make
from harness.cells.provenance import PACKAGES, package_version

FOLDER = Path(__file__).parents[2] / "tests" / "golden"
TOLERANCE = 1e-3
"""relative difference that other hardware and other builds of the same versions may make"""

CUT: dict[str, Any] = {
    "total_steps": 768,
    "num_envs": 2,
    "num_steps": 128,
    "minibatch_size": 64,
    "eval_every": 3,
    "eval_episodes": 2,
}
RUNS: dict[str, Any] = {
    "ppo": ppo.Args(**(CUT | {"total_steps": 1536, "num_envs": 4})),
    "ppo_continuous": ppo_continuous.Args(**CUT),
    "ppo_minigrid": ppo_minigrid.Args(env_id="MiniGrid-Empty-5x5-v0", **CUT),
    "ppo_atari": ppo_atari.Args(
        **(CUT | {"total_steps": 384, "num_steps": 64, "update_epochs": 2, "eval_episodes": 1})
    ),
}
MODULES = {"ppo": ppo, "ppo_continuous": ppo_continuous, "ppo_minigrid": ppo_minigrid, "ppo_atari": ppo_atari}


def curve(agent: str) -> list[dict[str, float]]:
    """The losses, kept share and evaluation of an agent's first three rounds, with the filter iif."""
    torch.set_num_threads(1)
    recorder = SilentRecorder()
    MODULES[agent].train(RUNS[agent], make("iif"), recorder)
    rounds = [report.losses | {"kept": report.kept} for report in recorder.rounds]
    rounds[-1]["evaluation"] = float(recorder.returns[-1].mean())
    return rounds


def read(agent: str) -> dict[str, Any]:
    """What is kept for an agent: versions and rounds."""
    kept: dict[str, Any] = json.loads((FOLDER / f"{agent}.json").read_text(encoding="utf-8"))
    return kept


def difference(kept: list[dict[str, float]], found: list[dict[str, float]]) -> float:
    """Largest relative difference of any number; infinite if the rounds hold different numbers."""
    if [list(one) for one in kept] != [list(other) for other in found]:
        return float("inf")
    pairs = [(one[name], other[name]) for one, other in zip(kept, found, strict=True) for name in one]
    return max(abs(a - b) / max(abs(a), abs(b), 1e-3) for a, b in pairs)


@dataclass(frozen=True)
class Args:
    """Compare the first rounds of every agent with what is kept."""

    write: bool = False
    """write the new rounds into tests/golden"""


def main(argv: list[str] | None = None) -> int:
    """Print the differences, write if asked; exit code 1 if something differs and nothing was written."""
    args = tyro.cli(Args, args=argv, prog="scripts/rebaseline", description=__doc__)
    differs = False
    for agent in RUNS:
        found = curve(agent)
        kept = read(agent)["rounds"] if (FOLDER / f"{agent}.json").exists() else []
        change = difference(kept, found)
        differs |= change > TOLERANCE
        print(f"{agent}: largest relative difference {change:.2g}")
        if args.write:
            versions = {name: version for name in PACKAGES if (version := package_version(name))}
            content = {"versions": versions, "rounds": found}
            (FOLDER / f"{agent}.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return int(differs and not args.write)


if __name__ == "__main__":
    sys.exit(run_command(main))
