"""The figures of what was found in rounds, each with its text beside it.

Draws what it is given: findings, rankings and rounds (`harness.rounds`). `harness.looking` and the commands import it;
it imports neither, and matplotlib, an extra, only where a figure is drawn.
"""
