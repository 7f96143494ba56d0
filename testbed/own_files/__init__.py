"""The user's own Python: files that are run to take something from them, Mininet's Topo classes."""
