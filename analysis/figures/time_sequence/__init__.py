"""A flow's segments at its sender: sequence numbers over time."""
