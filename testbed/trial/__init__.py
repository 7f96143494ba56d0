"""Doing it: build the network, verify it, run the flows, capture, sample, take down."""
