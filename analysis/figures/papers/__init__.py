"""The figures of the papers' experiments."""
