"""Kernels compared and debugged, and Linux's own tests."""
