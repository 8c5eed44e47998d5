"""How fast things are: training next to a peer, the backends' environments, the filters.

Measures what the other packages do and is imported by none of them; `scripts/bench`, `scripts/bench_envs` and
`scripts/bench_filters` start it.
"""
