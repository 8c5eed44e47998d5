"""Ray: the same cells on many machines.

Imports `harness.cells` and `harness.sweeps`; only `harness.run` imports it, and Ray itself only when it is asked for.
"""
