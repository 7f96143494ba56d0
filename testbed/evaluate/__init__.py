"""Evaluations of a variant or queue against others, in settings that are given or drawn."""
