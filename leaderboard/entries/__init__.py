"""Submissions: their schemas, reading and writing them, and the clauses that they have to pass.

Imports `leaderboard.runs` and the file of facts about tasks; submit, validate, rerun and the board import it.
"""
