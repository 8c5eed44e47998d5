"""Runs filters across tasks and matched seeds; `python -m harness.run --help`.

The modules here are the commands: arguments and words. Their work is in the packages below. Harness imports filters,
algos and leaderboard; nothing imports harness.
"""
