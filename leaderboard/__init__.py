"""Turns run directories into comparisons with honest statistics; imports neither torch nor gymnasium.

The modules here are the commands; their work is in the packages below. Leaderboard reads files: it imports `filters`
(names and sources of filters) and nothing of algos or harness.
"""
