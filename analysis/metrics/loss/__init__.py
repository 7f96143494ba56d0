"""Losses as throughput models need them: loss events, recoveries, timeouts."""
