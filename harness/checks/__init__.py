"""Is everything as it should be: the runs in a folder, this installation, the agents' first rounds, the imports?

Looks and changes nothing, except `faults`, which kills sweeps of its own. The commands `harness.verify`,
`harness.status` and `harness.doctor` import it, and no other package does.
"""
