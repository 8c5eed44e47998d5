"""The format of run directories: what complete means, reading damaged or hostile files, and their numbers as arrays.

Imports nothing but `filters.errors`; the rest of leaderboard and harness, which writes them, import it.
"""
