"""Sweeps: which cells there are, how they are spread over processes, how far they are, and what came of them.

Imports `harness.cells` and `harness.tasks`; the commands import it, and whatever runs jobs side by side.
"""
