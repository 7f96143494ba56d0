"""The papers' experiments, one file each: which scenarios, which figures."""
