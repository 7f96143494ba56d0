"""A flow's whole story on one time axis: window, round trips, queue, throughput and events."""
