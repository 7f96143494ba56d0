"""What the sessions of background traffic draw, as traffic/background/client.c draws it."""

from __future__ import annotations

import math

MASK = (1 << 64) - 1


class Generator:
    """splitmix64, and what is made of it."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def uniform(self) -> float:
        """In [0, 1)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return float((z ^ (z >> 31)) >> 11) / float(1 << 53)

    def size(self, mean: float, shape: float) -> int:
        """Of a file: Pareto."""
        least = mean * (shape - 1) / shape
        return math.ceil(least * math.pow(1 - self.uniform(), -1 / shape))

    def thought(self, mean_s: float) -> float:
        """Seconds: exponential."""
        return -mean_s * math.log(1 - self.uniform())
