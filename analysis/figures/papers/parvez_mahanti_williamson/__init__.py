"""Parvez, Mahanti, Williamson: NewReno's two forms and their models."""
