"""A results folder: metrics joined with verdicts, cached per trial and written as tables."""
