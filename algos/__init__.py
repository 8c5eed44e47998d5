"""Single-file PPO agents that accept a data filter."""
