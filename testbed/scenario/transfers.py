"""The transfers of a workload: drawn by its seed, and what each would take in an empty network.

The same seed and name give the same transfers everywhere. Times and sizes come from separate
generators, so that the sizes stay the same where the load changes; so does what each session draws.
Only `random()` is called, whose sequence Python promises to keep (its other methods may change).
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from testbed.faults import Fault
from testbed.memo import cached_by_repr
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.network import PathSummary
from testbed.scenario.workload import (
    MAX_LISTED,
    MAX_SIZE_BYTES,
    MAX_TRANSFERS,
    Arrivals,
    Connections,
    Distribution,
    Process,
    Sessions,
    Sizes,
    Workload,
)

Points = tuple[tuple[float, ...], ...]

# Published distributions of transfers' sizes: bytes, and the share of transfers not larger, with
# straight lines between the points. The numbers are those of the authors' own generator
# (github.com/datacenter/empirical-traffic-gen, files DCTCP_CDF and VL2_CDF). The mean of the first
# is 1.71 MB, of the second 12.66 MB: the sizes of many papers since, which scale them where links
# are slower.

# Alizadeh and others, "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4: a cluster that searches
# the web; called web search in Alizadeh and others, "pFabric", SIGCOMM 2013, figure 4a.
WEB_SEARCH: Points = (
    (0, 0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1),
)

# Greenberg and others, "VL2", SIGCOMM 2009, figure 2: a cluster that mines data; "pFabric",
# figure 4b.
DATA_MINING: Points = (
    (0, 0),
    (180, 0.1),
    (216, 0.2),
    (560, 0.3),
    (900, 0.4),
    (1_100, 0.5),
    (1_870, 0.6),
    (3_160, 0.7),
    (10_000, 0.8),
    (400_000, 0.9),
    (3_160_000, 0.95),
    (100_000_000, 0.98),
    (1_000_000_000, 1),
)

PUBLISHED: Mapping[Distribution, Points] = {
    Distribution.WEB_SEARCH: WEB_SEARCH,
    Distribution.DATA_MINING: DATA_MINING,
}


SEGMENT_BYTES = 1448  # of data in a full frame, with timestamps
HEADER_BYTES = 66  # Ethernet, IP, TCP with timestamps
ENDLESS = -1  # the size of a transfer without an end


@dataclass(frozen=True)
class PlannedTransfer:
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

    def __iter__(self) -> Iterator[PlannedTransfer]:
        sessions = self.workload.arrivals.sessions
        assert sessions is not None
        size_of, scale = _sampler(self.workload.sizes), self.workload.sizes.scale
        for number, session in enumerate(draw_sessions(sessions, self.seed)):
            if session.is_long:
                yield PlannedTransfer(session.start_ns, ENDLESS, number)
                continue
            throw = random.Random(f"{self.seed} session {number}").random
            least_ns = 2e9 * max((session.rtt_ms or 0) / 1e3, self.path_rtt_s)
            wait_ns, begins_ns = session.start_ns, 0.0
            while (begins_ns := begins_ns + wait_ns) < self.seconds * 1e9:
                yield PlannedTransfer(wait_ns, _whole_bytes(scale * size_of(throw())), number)
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


def draw(
    workload: Workload, seed: str, rate_mbit: float, seconds: float
) -> Iterator[PlannedTransfer]:
    """Draw the transfers that begin within this many seconds, in order."""
    throw = random.Random(f"{seed} sizes").random
    size_of = _sampler(workload.sizes)
    for at_ns in itertools.islice(_times(workload, seed, rate_mbit), workload.count):
        if at_ns >= seconds * 1e9:
            return
        yield PlannedTransfer(at_ns, _whole_bytes(workload.sizes.scale * size_of(throw())))


def _whole_bytes(size: float) -> int:
    return max(1, min(MAX_SIZE_BYTES, round(size)))


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


CACHED_FLOWS = (
    8  # flows' transfers: a trial is checked and planned, and then come those of the same seed
)
ROUND_TRIPS = {Connections.NEW: 2, Connections.KEPT: 1}  # a handshake, and a request


def planned_transfers(scenario: Scenario, flow: Flow) -> Iterable[PlannedTransfer]:
    """Return the transfers of a workload in order, at most one more than can run."""
    if flow.workload is None:
        return ()
    path = scenario.network.path(flow.src, flow.dst)
    seed = f"{scenario.seed} {flow.name}"
    if flow.workload.arrivals.sessions is not None:
        # sessions may start late, and last to the end
        seconds = scenario.stop_s(flow) - flow.start_s
        return SessionTransfers(flow.workload, seed, path.rtt_ms / 1e3, seconds)
    return _drawn((flow.workload, seed, path.rate_mbit, _surely_s(scenario, flow)))


def _surely_s(scenario: Scenario, flow: Flow) -> float:
    """Return how long the flow lasts at least, in seconds."""
    return scenario.stop_s(flow) - flow.start_s - scenario.start_jitter_ms / 1e3


@cached_by_repr(CACHED_FLOWS)
def _drawn(asked: tuple[Workload, str, float, float]) -> tuple[PlannedTransfer, ...]:
    """Draw the transfers; without a limit, arrivals that come too often would never end."""
    return tuple(itertools.islice(draw(*asked), MAX_TRANSFERS + 1))


def transfer_faults(scenario: Scenario) -> Iterator[Fault]:
    """Yield workloads without transfers, or with more than can run."""
    for index, flow in enumerate(scenario.flows):
        if flow.workload is None:
            continue
        where = ("flows", index, "workload")
        fast = math.isinf(scenario.network.path(flow.src, flow.dst).rate_mbit)
        if fast and flow.workload.arrivals.load is not None:
            message = f"no link from {flow.src} to {flow.dst} has a rate: per_s"
            yield Fault((*where, "arrivals", "load"), message)
            continue
        if (sessions := flow.workload.arrivals.sessions) is not None:
            for fault in _session_faults(sessions, _surely_s(scenario, flow)):
                yield fault.inside(*where, "arrivals", "sessions")
            continue
        count = sum(1 for _ in planned_transfers(scenario, flow))
        if count > MAX_TRANSFERS:
            message = f"more than {MAX_TRANSFERS} transfers: a count, or fewer a second"
            yield Fault(where, message)
        if not count:
            yield Fault(where, "no transfer begins before the flow's end")


def _session_faults(sessions: Sessions, seconds: float) -> Iterator[Fault]:
    """Yield why sessions start too late, or may come to more transfers than can run."""
    if sessions.spread_s >= seconds:
        message = f"{sessions.spread_s:g} is not within the flow's {seconds:g} s"
        yield Fault(("spread_s",), message)
    least_s = (sessions.think_ms + 2 * (sessions.rtt_min_ms or 0)) / 1e3
    # a session may draw shorter thoughts than the mean
    for many, most in ((1.25, MAX_TRANSFERS), (sessions.number, MAX_LISTED)):
        if many * seconds / least_s > most:
            message = f"may come to more than {most} transfers: longer thoughts, or fewer s"
            yield Fault((), message)
            return


def ideal_s(workload: Workload, path: PathSummary, size: int, burst_bytes: int) -> float:
    """Return the least time that a transfer takes in an empty network.

    It is a round trip for the handshake of a new connection, one for the request, and the time that
    the slowest link takes to send all frames. A token bucket lets a burst go at once, and a frame
    leave when those before it are paid for, whatever its own length.
    """
    held = wire_bytes(size)
    if burst_bytes:
        held = max(0, held - wire_bytes((size - 1) % SEGMENT_BYTES + 1) - burst_bytes)
    held_s = held * 8e-6 / path.rate_mbit
    return ROUND_TRIPS[workload.connections] * path.rtt_ms / 1e3 + held_s
