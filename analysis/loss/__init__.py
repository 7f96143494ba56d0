"""Losses as models of throughput know them: loss events, what they cost, and the timer."""
