"""Which experiment is shown by which figures and tables."""
