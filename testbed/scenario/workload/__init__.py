"""Workloads: arrivals, sizes and connections as values, and the drawing of their transfers."""
