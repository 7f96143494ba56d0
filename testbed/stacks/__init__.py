"""Transports in user space: what they are, how they are built, and their flows."""
