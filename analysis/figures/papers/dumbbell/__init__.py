"""Kapre, Saxena and Joshi, Hattikar: TCP and CBR on the six-node dumbbell."""
