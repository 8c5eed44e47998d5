"""A round between its collection and its update: stopped there, looked at, valued by Monte Carlo and ranked.

Knows tasks and agents; draws nothing, and nothing here knows a command. `harness.drawing`, `harness.looking` and the
commands import it, it imports none of them.
"""
