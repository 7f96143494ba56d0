"""Parvez, Mahanti, Williamson: NewReno's two forms, measured and modelled."""
