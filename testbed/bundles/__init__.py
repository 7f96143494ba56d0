"""Results as one file that a stranger can check: what is in it, and its verification."""
