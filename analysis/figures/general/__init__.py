"""Figures that suit any experiment: sweeps, throughput against delay, distributions."""
