"""Transports in user space beside the kernel's TCP: who shares with whom, and conformance."""
