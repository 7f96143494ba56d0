"""The standard evaluations of a congestion control or a queue, which `testbed evaluate` runs."""
