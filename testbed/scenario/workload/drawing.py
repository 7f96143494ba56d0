"""Draws a workload's transfers: the same seed and name give the same transfers everywhere.

Times and sizes come from generators of their own, so that the sizes stay the same where the load
changes. Only `random()` is asked, which Python promises to keep (its other draws may change).
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.scenario.workload.published_sizes import PUBLISHED, Points
from testbed.scenario.workload.workload import Arrivals, Distribution, Process, Sizes, Workload

SEGMENT_BYTES = 1448  # of data in a full frame, with timestamps
HEADER_BYTES = 66  # Ethernet, IP, TCP with timestamps
LARGEST_BYTES = 1 << 40


@dataclass(frozen=True)
class Transfer:
    """One transfer: when it begins, in ns after the flow's start, and its bytes of data."""

    at_ns: int
    size: int


def wire_bytes(size: float) -> float:
    """The least that so much data takes on the wire: full frames, and what is left."""
    return size + HEADER_BYTES * math.ceil(size / SEGMENT_BYTES)


def mean_bytes(sizes: Sizes) -> float:
    """The mean of the distribution, whatever was drawn of it."""
    if sizes.mean_bytes is not None:
        return sizes.scale * sizes.mean_bytes
    steps = itertools.pairwise(points_of(sizes))
    return sizes.scale * sum((q - p) * (x + y) / 2 for (x, p), (y, q) in steps)


def points_of(sizes: Sizes) -> Points:
    """The points of an empirical distribution, the published ones included."""
    return PUBLISHED.get(sizes.distribution, sizes.cdf)


def rate_per_s(workload: Workload, rate_mbit: float) -> float:
    """The mean rate of arrivals, on a way whose slowest link has this rate."""
    arrivals = workload.arrivals
    if arrivals.per_s is not None:
        return arrivals.per_s
    assert arrivals.load is not None
    frames = (SEGMENT_BYTES + HEADER_BYTES) / SEGMENT_BYTES
    return arrivals.load * rate_mbit * 1e6 / (8 * frames * mean_bytes(workload.sizes))


def draw(workload: Workload, seed: str, rate_mbit: float, seconds: float) -> Iterator[Transfer]:
    """The transfers that begin within so many seconds, in their order."""
    throw = random.Random(f"{seed} sizes").random
    size_of = _sampler(workload.sizes)
    for at_ns in itertools.islice(_times(workload, seed, rate_mbit), workload.count):
        if at_ns >= seconds * 1e9:
            return
        size = workload.sizes.scale * size_of(throw())
        yield Transfer(at_ns, max(1, min(LARGEST_BYTES, round(size))))


def _times(workload: Workload, seed: str, rate_mbit: float) -> Iterator[int]:
    """Arrivals, in whole microseconds."""
    arrivals = workload.arrivals
    if arrivals.process is Process.TIMES:
        seconds: Iterator[float] = iter(arrivals.times_s)
    else:
        seconds = _process(arrivals, seed, rate_per_s(workload, rate_mbit))
    return (round(each * 1e6) * 1000 for each in seconds)


def _process(arrivals: Arrivals, seed: str, per_s: float) -> Iterator[float]:
    if arrivals.process is Process.DETERMINISTIC:
        return (number / per_s for number in itertools.count())
    throw = random.Random(f"{seed} arrivals").random
    gaps = (-math.log(1 - throw()) / per_s for _ in itertools.count())
    return itertools.accumulate(gaps)


def _sampler(sizes: Sizes) -> Callable[[float], float]:
    """The distribution's quantiles, for numbers from 0 up to but without 1."""
    mean = sizes.mean_bytes or 0.0
    if sizes.distribution is Distribution.CONSTANT:
        return lambda _: mean
    if sizes.distribution is Distribution.PARETO:
        shape = sizes.shape or 0.0
        least = mean * (shape - 1) / shape
        return lambda u: float(least * (1 - u) ** (-1 / shape))
    if sizes.distribution is Distribution.LOGNORMAL:
        from statistics import NormalDist  # loads decimals and fractions, which no trial needs

        normal = NormalDist()
        sigma = sizes.sigma or 0.0
        middle = math.log(mean) - sigma**2 / 2
        return lambda u: math.exp(middle + sigma * normal.inv_cdf(max(u, 1e-16)))
    return _interpolated(points_of(sizes))


def _interpolated(points: Points) -> Callable[[float], float]:
    parts = [part for _, part in points]

    def quantile(u: float) -> float:
        above = bisect.bisect_right(parts, u)
        if above == len(points):
            return points[-1][0]
        (x, p), (y, q) = points[above - 1 : above + 1]
        return x + (y - x) * (u - p) / (q - p)

    return quantile
