"""Runs filters across tasks and matched seeds; `python -m harness.run --help`."""
