"""The studies of rounds: what is asked of each seed, the numbers that come of it, and which of them are there already.

A module a study (diagnosis, temporal, intervention, decomposition) on top of `harness.rounds` and `harness.drawing`.
Only the commands import it: `harness.diagnose`, `harness.intervene` and `harness.decompose`.
"""
