"""Single-file PPO agents that accept a data filter.

Each agent is one file that reads from top to bottom and runs alone. What the agents have in common and is not the
algorithm lies in `algos.envs` and `algos.training`. Nothing here imports more than `filters`; `harness` imports from
here.
"""
