"""Intervals, tests, cells of repeats, and the comparison of two results folders."""
