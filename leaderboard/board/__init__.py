"""The board: what is said of every entry, as rows, Markdown, figures and a static site.

Imports `leaderboard.entries` and `leaderboard.statistics`; `leaderboard.build` imports it.
"""
