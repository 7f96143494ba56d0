"""Whole programs in a guest, and what they have to show."""
