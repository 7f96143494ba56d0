"""Guo, Yuan, Sheng: variants of TCP through one router."""
