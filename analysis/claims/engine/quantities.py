"""The measures that claims are about: units, digits, and differences too small to count."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A measure's notation, and the difference below which two values count as equal."""

    unit: str
    decimals: int
    factor: float = 1
    relative: float = 0.0
    absolute: float = 0.0

    def write(self, value: float, sign: str = "") -> str:
        """A number with its unit."""
        if not math.isfinite(value):
            return "not known"
        return f"{value * self.factor:{sign}.{self.decimals}f} {self.unit}".rstrip()

    def margin(self, a: float, b: float) -> float:
        """Differences up to this are disregarded."""
        return max(self.absolute, self.relative * (abs(a) + abs(b)) / 2)


# 2 %: what `testbed compare` treats as the same rate; 5 % of a drop rate, or one packet in ten
# thousand: about one drop in a trial; 0.1 ms: an eighth of the time that a packet of 1000 bytes
# takes at 10 Mbit/s; 1 percentage point of a share: 2 % of a half.
RATE = Measure("Mbit/s", 3, relative=0.02)
DROPS = Measure("%", 3, factor=100, relative=0.05, absolute=1e-4)
DELAY = Measure("ms", 2, absolute=0.1)
SHARE = Measure("%", 1, factor=100, absolute=0.01)
RATIO = Measure("", 3, relative=0.02)
MEASURES = {
    "throughput_mbps": RATE,
    "goodput_mbps": RATE,
    "drop_rate": DROPS,
    "owd_mean_ms": DELAY,
    "rtt_mean_ms": DELAY,
    "recovery_latency_mean_ms": DELAY,
    "share": SHARE,
}
