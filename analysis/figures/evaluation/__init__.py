"""The figures and tables of the standard evaluations."""
