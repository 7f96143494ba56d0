"""The transfers of a flow of kind workload, and what each would take in an empty network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from testbed.kept import kept
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.planned.way import Way, way
from testbed.scenario.workload.drawing import SEGMENT_BYTES, Transfer, draw, wire_bytes
from testbed.scenario.workload.workload import Connections, Workload
from testbed.scenario.workload.workload_faults import MAX_TRANSFERS

KEPT = 8  # flows' transfers: a trial is checked and planned, and then come those of the same seed
ROUND_TRIPS = {Connections.NEW: 2, Connections.KEPT: 1}  # a handshake, and a request


def planned_transfers(scenario: Scenario, flow: Flow) -> tuple[Transfer, ...]:
    """All transfers of a flow, in their order, one more than can run if there are more; none of a
    flow of another kind."""
    if flow.workload is None:
        return ()
    rate_mbit = way(scenario.topology, flow.src, flow.dst).rate_mbit
    seconds = scenario.stop_s(flow) - flow.start_s - scenario.start_jitter_ms / 1e3
    return _drawn((flow.workload, f"{scenario.seed} {flow.name}", rate_mbit, seconds))


@kept(KEPT)
def _drawn(asked: tuple[Workload, str, float, float]) -> tuple[Transfer, ...]:
    """Nothing would end them if they came too often."""
    return tuple(itertools.islice(draw(*asked), MAX_TRANSFERS + 1))


def transfer_faults(scenario: Scenario) -> Iterator[str]:
    """Workloads without transfers, or with more than can run."""
    for index, flow in enumerate(scenario.flows):
        if flow.workload is None:
            continue
        where = f"flows[{index}].workload"
        fast = math.isinf(way(scenario.topology, flow.src, flow.dst).rate_mbit)
        if fast and flow.workload.arrivals.load is not None:
            yield f"{where}.arrivals.load: no link from {flow.src} to {flow.dst} has a rate: per_s"
            continue
        count = len(planned_transfers(scenario, flow))
        if count > MAX_TRANSFERS:
            yield f"{where}: more than {MAX_TRANSFERS} transfers: a count, or fewer a second"
        if not count:
            yield f"{where}: no transfer begins before the flow's end"


def ideal_s(workload: Workload, path: Way, size: int, burst_bytes: int) -> float:
    """The least time that a transfer takes in an empty network: a round trip for the handshake of
    a new connection, one for the request, and the time for which the slowest link holds its last
    frame back. A token bucket lets a burst go at once, and a frame leave when those before it are
    paid for, whatever its own length."""
    before_last = wire_bytes(size) - wire_bytes((size - 1) % SEGMENT_BYTES + 1)
    held_s = max(0.0, before_last - burst_bytes) * 8e-6 / path.rate_mbit
    return ROUND_TRIPS[workload.connections] * path.rtt_s + held_s
