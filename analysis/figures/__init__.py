"""The figures and tables of each experiment."""
