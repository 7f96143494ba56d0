"""From Python and notebooks: what the command line does, with DataFrames as results."""
