"""Data filters for online RL: `filters.api` is the interface, `filters.registry` finds a filter by name."""
