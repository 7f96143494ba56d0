"""Pure readers of results: packets → flows → metrics → figures and tables."""
