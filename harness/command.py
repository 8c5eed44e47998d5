"""Which command does `filtergym NAME` mean? The same as `python -m` with the module's full name.

filtergym run --filter iif
filtergym report runs/
"""

import runpy
import sys

from filters.errors import UsageError, run_command
from filters.registry import suggest

COMMANDS = {
    **{
        name: f"harness.{name}"
        for name in ("run", "status", "verify", "doctor", "diagnose", "intervene", "decompose", "reference", "claims")
    },
    **{name: f"leaderboard.{name}" for name in ("report", "submit", "validate", "rerun", "build", "power", "picture")},
    **{"check": "filters.check", "catalog": "filters.catalog"},
    **{name: f"algos.{name}" for name in ("ppo", "ppo_continuous", "ppo_minigrid", "ppo_atari")},
}
"""by name, the module that is run"""


def main() -> int:
    """Run the module as `python -m` would; returns the exit code."""
    return run_command(start)


def start() -> int:
    """Find the module by the first word of the command line and hand it the others."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        for name, module in COMMANDS.items():
            print(f"  filtergym {name:15} python -m {module}")
        return 0
    if words[0] not in COMMANDS:
        raise UsageError(f"unknown command {words[0]!r}; {suggest(words[0], list(COMMANDS))}")
    sys.argv = [f"filtergym {words[0]}", *words[1:]]
    try:
        runpy.run_module(COMMANDS[words[0]], run_name="__main__", alter_sys=True)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
