"""The transfers of a flow of kind workload, and what each would take in an empty network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from testbed.memo import cached_by_repr
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.network import PathSummary
from testbed.scenario.workload.drawing import (
    SEGMENT_BYTES,
    SessionTransfers,
    Transfer,
    draw,
    wire_bytes,
)
from testbed.scenario.workload.workload import Connections, Sessions, Workload
from testbed.scenario.workload.workload_faults import MAX_LISTED, MAX_TRANSFERS

CACHED_FLOWS = (
    8  # flows' transfers: a trial is checked and planned, and then come those of the same seed
)
ROUND_TRIPS = {Connections.NEW: 2, Connections.KEPT: 1}  # a handshake, and a request


def planned_transfers(scenario: Scenario, flow: Flow) -> Iterable[Transfer]:
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
def _drawn(asked: tuple[Workload, str, float, float]) -> tuple[Transfer, ...]:
    """Draw the transfers; without a limit, arrivals that come too often would never end."""
    return tuple(itertools.islice(draw(*asked), MAX_TRANSFERS + 1))


def transfer_faults(scenario: Scenario) -> Iterator[str]:
    """Find workloads without transfers, or with more than can run."""
    for index, flow in enumerate(scenario.flows):
        if flow.workload is None:
            continue
        where = f"flows[{index}].workload"
        fast = math.isinf(scenario.network.path(flow.src, flow.dst).rate_mbit)
        if fast and flow.workload.arrivals.load is not None:
            yield f"{where}.arrivals.load: no link from {flow.src} to {flow.dst} has a rate: per_s"
            continue
        if (sessions := flow.workload.arrivals.sessions) is not None:
            yield from _session_faults(
                sessions, _surely_s(scenario, flow), f"{where}.arrivals.sessions"
            )
            continue
        count = sum(1 for _ in planned_transfers(scenario, flow))
        if count > MAX_TRANSFERS:
            yield f"{where}: more than {MAX_TRANSFERS} transfers: a count, or fewer a second"
        if not count:
            yield f"{where}: no transfer begins before the flow's end"


def _session_faults(sessions: Sessions, seconds: float, where: str) -> Iterator[str]:
    """Find sessions that would start too late, or come to more transfers than can run."""
    if not 0 <= sessions.spread_s < seconds:
        yield f"{where}.spread_s: {sessions.spread_s:g} is not within the flow's {seconds:g} s"
    least_s = (sessions.think_ms + 2 * (sessions.rtt_min_ms or 0)) / 1e3
    # a session may draw shorter thoughts than the mean
    for many, most in ((1.25, MAX_TRANSFERS), (sessions.number, MAX_LISTED)):
        if many * seconds / least_s > most:
            yield f"{where}: may come to more than {most} transfers: longer thoughts, or fewer s"
            return


def ideal_s(workload: Workload, path: PathSummary, size: int, burst_bytes: int) -> float:
    """Return the least time that a transfer takes in an empty network.

    It is a round trip for the handshake of a new connection, one for the request, and the time for
    which the slowest link holds its last frame back. A token bucket lets a burst go at once, and a
    frame leave when those before it are paid for, whatever its own length.
    """
    before_last = wire_bytes(size) - wire_bytes((size - 1) % SEGMENT_BYTES + 1)
    held_s = max(0.0, before_last - burst_bytes) * 8e-6 / path.rate_mbit
    return ROUND_TRIPS[workload.connections] * path.rtt_ms / 1e3 + held_s
