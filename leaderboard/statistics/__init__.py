"""Metrics on arrays [S, K], paired tests, and the comparison of runs that stands on them.

Imports `leaderboard.runs`; the report, the board, and everything that compares import it.
"""
