"""Exact scores from gradients: directional derivatives, norms and products, without a gradient per record in memory.

Imports `filters.api`; the filters that stand on gradients import it.
"""
