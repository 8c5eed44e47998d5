"""The papers' claims, each with what our runs say of it, and the pages that show that.

Imports `leaderboard.board`, `leaderboard.entries` and `leaderboard.statistics`; `leaderboard.build` imports it.
"""
