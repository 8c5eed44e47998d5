"""What surrounds an algorithm while it trains, for every agent alike.

A run's `state` and how it begins, the `loop` between its rounds, the `recorder` and its `clock`, the `checkpoint`, the
random `streams`, the check of `settings`, the `compiled` step, `tensors` on the device, records made harmful on purpose
(`corrupt`), the look at what is not `finite`, and the agent that runs `alone`. Imports `algos.envs` and `filters`,
never an agent; agents and `harness` import from here.
"""
