"""Guo, Yuan, Sheng: one flow, and four at once, through a router."""
