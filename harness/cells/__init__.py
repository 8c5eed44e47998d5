"""Cells: one (task, filter, seed) becomes one run directory, exactly once, whatever happens on the way.

Imports `harness.tasks` and the format of run directories (`leaderboard.runs`); sweeps, clusters and checks import it.
"""
