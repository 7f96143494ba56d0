"""Draw a workload's transfers: the same seed and name give the same transfers everywhere.

Times and sizes come from separate generators, so that the sizes stay the same where the load
changes; so does what each session draws. Only `random()` is called, whose sequence Python promises
to keep (its other methods may change).
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testbed.scenario.workload.published_sizes import PUBLISHED, Points
from testbed.scenario.workload.workload import (
    Arrivals,
    Distribution,
    Process,
    Sessions,
    Sizes,
    Workload,
)

SEGMENT_BYTES = 1448  # of data in a full frame, with timestamps
HEADER_BYTES = 66  # Ethernet, IP, TCP with timestamps
LARGEST_BYTES = 1 << 40
ENDLESS = -1  # the size of a transfer without an end


@dataclass(frozen=True)
class Transfer:
    """One transfer: when it begins, and its bytes of data."""

    at_ns: int  # after the flow's start; in a session, after the end of the transfer before it
    size: int
    session: int = 0


@dataclass(frozen=True)
class Session:
    """What the seed draws for a session as a whole."""

    is_long: bool
    start_ns: int
    rtt_ms: float | None  # None: the path's


@dataclass(frozen=True)
class SessionTransfers:
    """The transfers of all sessions, drawn whenever they are iterated over: there are many.

    How many a session comes to depends on the network. Those that are drawn suffice if each takes
    no more than two round trips, one for the handshake and one for the request.
    """

    workload: Workload
    seed: str
    path_rtt_s: float
    seconds: float

    def __iter__(self) -> Iterator[Transfer]:
        sessions = self.workload.arrivals.sessions
        assert sessions is not None
        size_of, scale = _sampler(self.workload.sizes), self.workload.sizes.scale
        for number, session in enumerate(draw_sessions(sessions, self.seed)):
            if session.is_long:
                yield Transfer(session.start_ns, ENDLESS, number)
                continue
            throw = random.Random(f"{self.seed} session {number}").random
            least_ns = 2e9 * max((session.rtt_ms or 0) / 1e3, self.path_rtt_s)
            wait_ns, begins_ns = session.start_ns, 0.0
            while (begins_ns := begins_ns + wait_ns) < self.seconds * 1e9:
                yield Transfer(wait_ns, _whole_bytes(scale * size_of(throw())), number)
                begins_ns += least_ns
                wait_ns = round(-math.log(1 - throw()) * sessions.think_ms * 1e6)


def draw_sessions(sessions: Sessions, seed: str) -> tuple[Session, ...]:
    """Draw the sessions: the exact share of long ones in random order, round trips and starts."""
    throw = random.Random(f"{seed} sessions").random
    tickets = [throw() for _ in range(sessions.number)]
    order = sorted(range(sessions.number), key=tickets.__getitem__)
    long = set(order[: round(sessions.number * sessions.long_share)])
    return tuple(
        Session(
            is_long=number in long,
            start_ns=round(throw() * sessions.spread_s * 1e6) * 1000,
            rtt_ms=_session_rtt_ms(sessions, throw()),
        )
        for number in range(sessions.number)
    )


def _session_rtt_ms(sessions: Sessions, part: float) -> float | None:
    if sessions.rtt_min_ms is None or sessions.rtt_max_ms is None:
        return None
    return round(sessions.rtt_min_ms + part * (sessions.rtt_max_ms - sessions.rtt_min_ms), 3)


def wire_bytes(size: float) -> float:
    """Return the least bytes on the wire for this many bytes of data, in full frames and a rest."""
    return size + HEADER_BYTES * math.ceil(size / SEGMENT_BYTES)


def mean_bytes(sizes: Sizes) -> float:
    """Return the mean of the distribution."""
    if sizes.mean_bytes is not None:
        return sizes.scale * sizes.mean_bytes
    steps = itertools.pairwise(points_of(sizes))
    return sizes.scale * sum((q - p) * (x + y) / 2 for (x, p), (y, q) in steps)


def points_of(sizes: Sizes) -> Points:
    """Return the points of an empirical or published distribution."""
    return PUBLISHED.get(sizes.distribution, sizes.cdf)


def rate_per_s(workload: Workload, rate_mbit: float) -> float:
    """Return the mean rate of arrivals on a path whose slowest link has this rate."""
    arrivals = workload.arrivals
    if arrivals.per_s is not None:
        return arrivals.per_s
    assert arrivals.load is not None
    frames = (SEGMENT_BYTES + HEADER_BYTES) / SEGMENT_BYTES
    return arrivals.load * rate_mbit * 1e6 / (8 * frames * mean_bytes(workload.sizes))


def draw(workload: Workload, seed: str, rate_mbit: float, seconds: float) -> Iterator[Transfer]:
    """Draw the transfers that begin within this many seconds, in order."""
    throw = random.Random(f"{seed} sizes").random
    size_of = _sampler(workload.sizes)
    for at_ns in itertools.islice(_times(workload, seed, rate_mbit), workload.count):
        if at_ns >= seconds * 1e9:
            return
        yield Transfer(at_ns, _whole_bytes(workload.sizes.scale * size_of(throw())))


def _whole_bytes(size: float) -> int:
    return max(1, min(LARGEST_BYTES, round(size)))


def _times(workload: Workload, seed: str, rate_mbit: float) -> Iterator[int]:
    """Draw or list the arrivals, in whole microseconds."""
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
    """Return the distribution's quantile function, for numbers in [0, 1)."""
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
