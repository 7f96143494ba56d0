"""Mininet Topo classes of the papers' networks; each also works with `mn --custom`."""
