"""A flow over time: window, round trips, queue, losses on one axis."""
