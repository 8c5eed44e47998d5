"""The environments: one semantics over two backends, and what a policy earns in them.

`interface` says what N environments promise, `single` makes one Gymnasium environment, `envpool` is the native backend,
`vector` makes either; `episodes` cuts streams of steps, `evaluate` plays whole episodes, `extras` knows the optional
packages. Imports only `filters.errors`; agents, `algos.training` and `harness` import from here.
"""
