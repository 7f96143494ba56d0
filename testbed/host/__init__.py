"""The host engine: trials on this machine's kernel."""
