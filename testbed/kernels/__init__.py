"""The guest's kernels: which there are, and building them."""
