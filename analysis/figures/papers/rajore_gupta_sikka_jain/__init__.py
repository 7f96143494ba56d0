"""Rajore, Gupta, Sikka, Jain: video over access networks."""
