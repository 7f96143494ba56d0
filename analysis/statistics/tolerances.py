"""Tolerances within which two results agree: a default table and the user's overrides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.metrics.columns import NUMBER_COLUMNS
from testbed.errors import UsageError, nearest
from testbed.scenario.program_numbers import MEASURED_PREFIX


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference of the means: a share of A's mean or an amount, whichever is more."""

    relative: float = 0.0
    absolute: float = 0.0
    reason: str = ""

    def of(self, mean: float) -> float:
        """Return the amount for a mean of A."""
        return max(self.relative * abs(mean), self.absolute)

    def __str__(self) -> str:
        part = f"{100 * self.relative:g} %" if self.relative else ""
        amount = f"{self.absolute:g}" if self.absolute or not part else ""
        return " or ".join(each for each in (part, amount) if each)


# What is compared unless --metric says otherwise.
TOLERANCES: Mapping[str, Tolerance] = {
    "throughput_mbps": Tolerance(0.02, 0.001, "a frame more or less in a 10 s trial at 1 Mbit/s"),
    "goodput_mbps": Tolerance(0.02, 0.001, "as throughput"),
    "drop_rate": Tolerance(0.1, 0.002, "two packets in a thousand: one loss event more or less"),
    "retransmitted": Tolerance(0.1, 5, "one loss event more or less, of a few packets"),
    "timeouts": Tolerance(0.0, 1, "a timer beside an ACK in flight: one may go either way"),
    "rtt_mean_ms": Tolerance(0.05, 0.5, "a host's scheduler takes some tenths of a ms"),
    "rtt_p95_ms": Tolerance(0.1, 1, "a tail spreads more than its mean"),
    "owd_mean_ms": Tolerance(0.05, 0.5, "as the RTT"),
    "share": Tolerance(0.0, 0.02, "a part of 1: two hundredths are hardly seen in a chart"),
    "jain": Tolerance(0.0, 0.02, "an index up to 1, as the share"),
}
DEFAULT_TOLERANCE = Tolerance(0.05, 0.0, "of a metric without a row of its own")
COMPARABLE = tuple(name for name in NUMBER_COLUMNS if name != "seed")


def choose_tolerances(metrics: str, tolerances: Sequence[str]) -> dict[str, Tolerance]:
    """Parse the metrics to compare and their tolerances from `NAME,…` and `KEY=VALUE,…`.

    A value is an amount in the metric's unit (`0.5`) or a part of A's mean (`2%`).
    """
    given = dict(_tolerance(text) for each in tolerances for text in each.split(","))
    if not metrics:
        return {**TOLERANCES, **given}
    names = metrics.split(",")
    for name in names:
        _known_metric(name)
    for name in given:
        if name not in names:
            raise UsageError(f"--tolerance {name}: not compared", f"--metric {metrics},{name}")
    return {name: given.get(name, TOLERANCES.get(name, DEFAULT_TOLERANCE)) for name in names}


def _tolerance(text: str) -> tuple[str, Tolerance]:
    name, _, value = text.partition("=")
    _known_metric(name)
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise UsageError(f"--tolerance {text}: not KEY=VALUE", "e.g. rtt_mean_ms=0.5, or =2%")
    if value.endswith("%"):
        return name, Tolerance(relative=number / 100)
    return name, Tolerance(absolute=number)


def _known_metric(name: str) -> None:
    if name not in COMPARABLE and not name.startswith(MEASURED_PREFIX):
        raise UsageError(f"no metric {name!r} to compare", nearest(name, COMPARABLE))
