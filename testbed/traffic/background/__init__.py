"""Background sessions: two programs in C, and the Python that runs and counts them."""
