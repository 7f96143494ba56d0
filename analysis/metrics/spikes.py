"""Throughput spikes, as Rajore, Gupta, Sikka and Jain count them in an I/O graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Spikes:
    """The spikes of a series."""

    count: int
    largest: float  # by which it exceeds its higher neighbour; 0 if there is none


def spikes(values: npt.ArrayLike, threshold: float = 50) -> Spikes:
    """Intervals that exceed both neighbours by at least the threshold.

    The values are rates in equal intervals (packets per second, as in the paper), with nothing
    sent before the first and after the last.
    """
    rates = np.asarray(values, dtype=np.float64)
    around = np.concatenate(([0.0], rates, [0.0]))
    above = rates - np.maximum(around[:-2], around[2:])
    found = above[above >= threshold]
    return Spikes(len(found), float(found.max(initial=0.0)))
