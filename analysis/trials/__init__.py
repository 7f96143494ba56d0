"""Readers of a trial's directory: packets, samples, reports, and series made of them."""
