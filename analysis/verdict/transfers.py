"""Checks of workloads: list, client's log and captures agree, and sessions are as drawn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analysis.transfers.connection_streams import NEVER
from analysis.transfers.sessions import session_rows
from analysis.transfers.transfer_reports import (
    Planned,
    Reported,
    read_planned,
    read_reported,
    server_retransmissions,
)
from analysis.transfers.transfer_rows import wire_of, workloads
from analysis.transfers.wire_transfers import OnTheWire, keys_of
from analysis.trials.capacity import capacity_of
from analysis.trials.packets import epoch_ns
from analysis.trials.samples import total_counter
from analysis.verdict.checks import (
    NOT_CAPTURED,
    NOT_RECORDED,
    Check,
    make_check,
    unknown,
    unverified,
)
from analysis.verdict.evidence import Evidence
from analysis.verdict.sender_queue import longest_wait_ns, own_queue_ns
from testbed.scenario.transfers import planned_transfers
from testbed.scenario.variations import drawn
from testbed.scenario.workload import Connections
from testbed.store.records import FlowRecord

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
FOREVER = np.iinfo(np.int64).max
MEMORY_PRESSURE_COUNTER = "TcpExtTCPMemoryPressures"
TIMESTAMP_MS = 1.0  # of the clock of TCP's timestamps

# this close to the flow's stop a transfer may be counted or not: by virtual time
STOP_EDGE_NS = {True: 1_000, False: 200_000_000}


def transfers(evidence: Evidence) -> Iterator[Check]:
    """Check the transfers and sessions of every workload."""
    for flow in workloads(evidence.trial, captured=False):
        planned = read_planned(evidence.trial, flow.name)
        reported = read_reported(evidence.trial, flow.name)
        if planned is None or reported is None:
            missing = "list of transfers" if planned is None else "client's log"
            note = f"its {missing} is not there"
            yield make_check("transfers", flow.name, evidence.virtual_time, 1, 0, note=note)
            continue
        yield check_list(evidence, flow, planned)
        yield _logged(evidence, flow, planned, reported)
        if _has_sessions(evidence, flow):
            yield from _sessions(evidence, flow)
        wire = wire_of(evidence.trial, evidence.packets, flow)
        if wire is None:
            yield unknown("transfers", f"{flow.name} captured", NOT_CAPTURED)
            yield unknown("transfer times", flow.name, NOT_CAPTURED)
            continue
        key = keys_of(flow.src_ports, planned, reported)
        yield _captured(evidence, flow, reported, key, wire)
        yield _times(evidence, flow, reported, key, wire)
        yield check_retransmissions(evidence, flow, reported, wire)


def _has_sessions(evidence: Evidence, flow: FlowRecord) -> bool:
    workload = evidence.trial.scenario.flow(flow.name).workload
    return workload is not None and workload.arrivals.sessions is not None


def _bad_transfers(evidence: Evidence, subject: str, bad: Booleans, what: str) -> Check:
    """Count bad transfers and name the first."""
    places = np.flatnonzero(bad)
    note = f"transfer {places[0]} {what}" if len(places) else ""
    return make_check("transfers", subject, evidence.virtual_time, len(places), 0, note=note)


def check_list(evidence: Evidence, flow: FlowRecord, planned: Planned) -> Check:
    """Check that the list is what the scenario's seed draws, transfer by transfer."""
    scenario = drawn(evidence.trial.scenario)
    expected = planned_transfers(scenario, scenario.flow(flow.name))
    rows = [(transfer.session, transfer.at_ns, transfer.size) for transfer in expected]
    wanted = np.array(rows, dtype=np.int64).reshape(-1, 3)
    given = np.column_stack((planned.session, planned.after_ns, planned.size))
    both = min(len(wanted), len(given))
    bad = np.ones(max(len(wanted), len(given)), dtype=np.bool_)
    bad[:both] = (wanted[:both] != given[:both]).any(axis=1)
    return _bad_transfers(evidence, f"{flow.name} list", bad, "is not the one that the seed draws")


def _logged(evidence: Evidence, flow: FlowRecord, planned: Planned, reported: Reported) -> Check:
    """Check that the client began every transfer when it was due, none longer than requested."""
    edge_ns = STOP_EDGE_NS[evidence.virtual_time]
    both = min(len(planned.size), len(reported.port))
    due_ns = planned.after_ns.copy()
    if _has_sessions(evidence, flow):
        due_ns[:both] = _session_due_ns(planned, reported, both)
    lasted_ns = round((flow.stopped_s - flow.started_s) * 1e9)
    due = due_ns < lasted_ns - edge_ns
    bad = np.ones(max(len(planned.size), len(reported.port)), dtype=np.bool_)
    bad[both : len(due)] &= due[both:]
    port, got, ended = (
        each[:both] for each in (reported.port, reported.received, reported.ended_ns)
    )
    size = np.where(planned.size < 0, FOREVER, planned.size)[:both]
    bad[:both] = ((port == 0) & due[:both]) | (got > size) | ((ended >= 0) & (got != size))
    bad[:both] |= _untimely(evidence, flow, due_ns[:both], reported)
    what = "is not in the client's log, did not begin in its time, or has another size there"
    return _bad_transfers(evidence, f"{flow.name} log", bad, what)


def _session_due_ns(planned: Planned, reported: Reported, count: int) -> Integers:
    """Return when each transfer was due after the flow's start; FOREVER while one is in progress.

    When a lost transfer ended is not logged: the next one is taken to be due when it began.
    """
    ended_ns = np.concatenate(([0], reported.ended_ns[: count - 1] - reported.zero_ns))
    ended = np.concatenate(([False], reported.ended_ns[: count - 1] >= 0))
    lost = np.concatenate(([False], reported.lost[: count - 1]))
    begun = reported.begun_ns[:count] >= 0
    after_ns = planned.after_ns[:count]
    due_ns = np.where(ended, ended_ns + after_ns, FOREVER)
    due_ns = np.where(lost & begun, reported.begun_ns[:count] - reported.zero_ns, due_ns)
    return np.where(planned.opens_session[:count], after_ns, due_ns)


def _untimely(
    evidence: Evidence, flow: FlowRecord, due_ns: Integers, reported: Reported
) -> Booleans:
    """Find transfers that began before their time, or, on new connections, after it."""
    workload = evidence.trial.scenario.flow(flow.name).workload
    begun_ns, edge_ns = reported.begun_ns[: len(due_ns)], STOP_EDGE_NS[evidence.virtual_time]
    # not the difference: FOREVER is the largest number
    off = begun_ns - reported.zero_ns < due_ns - edge_ns
    if workload is not None and workload.connections is Connections.NEW:
        off |= begun_ns - reported.zero_ns - edge_ns > due_ns
    return np.asarray(off & (begun_ns >= 0))


def _sessions(evidence: Evidence, flow: FlowRecord) -> Iterator[Check]:
    """Check sessions' round trips and windows, failed connections, and TCP's memory."""
    rows = session_rows(evidence.trial, flow)
    if rows is None:
        yield unverified("session RTT", flow.name, NOT_RECORDED)
        return
    virtual_time = evidence.virtual_time
    queued_ms = 1e-6 * sum(
        longest_wait_ns(queue, capacity_of(evidence.trial, queue))
        for queue in evidence.trial.record.queues
    )
    late_ms = (rows["rtt_min_ms"] - rows["rtt_ms"]).dropna()
    if len(late_ms):
        early_ms = -late_ms.to_numpy()
        if "timestamps" in flow.options:  # whose clock counts milliseconds, not what they began
            by_timestamp = rows["rtt_min_ms"][late_ms.index].to_numpy() % 1 == 0
            early_ms = early_ms - TIMESTAMP_MS * by_timestamp
        outside = np.maximum(early_ms, late_ms.to_numpy() - queued_ms)
        place = int(outside.argmax())
        worst = int(late_ms.index[place])
        yield make_check(
            "session RTT",
            f"{flow.name} {worst}",
            virtual_time,
            rows["rtt_min_ms"][worst],
            rows["rtt_ms"][worst],
            deviation=max(0.0, float(outside[place])),
        )
    if (allowed := evidence.trial.scenario.flow(flow.name).window_bytes) is not None:
        widest = int(rows["window_bytes"].max())
        over = max(0, widest - allowed)
        yield make_check("session window", flow.name, virtual_time, widest, allowed, deviation=over)
    failures = int(rows["failures"].sum())
    yield make_check("session failures", flow.name, virtual_time, failures, 0)
    times = total_counter(evidence.trial, MEMORY_PRESSURE_COUNTER)
    if times is None:
        yield unverified("memory", flow.name, NOT_RECORDED)
    else:
        yield make_check("memory", flow.name, virtual_time, times, 0)


def _captured(
    evidence: Evidence, flow: FlowRecord, reported: Reported, key: Integers, wire: OnTheWire
) -> Check:
    """Check that the captures show what the client began and finished, and nothing else."""
    stop_ns = epoch_ns(evidence.trial) + round(flow.stopped_s * 1e9)
    sure_ns = stop_ns - STOP_EDGE_NS[evidence.virtual_time]
    known = len(wire.begun_ns)
    begun_ns, ended_ns = reported.begun_ns[:known], reported.ended_ns[:known]
    begun = (begun_ns >= 0) != (wire.begun_ns >= 0)
    begun &= np.maximum(begun_ns, wire.begun_ns) < sure_ns
    if _keeps_connections(evidence, flow):
        begun &= ~held_back(key, begun_ns, wire, stop_ns)
    ended = (ended_ns >= 0) != ((wire.whole_ns >= 0) & (wire.whole_ns <= stop_ns))
    ended &= np.maximum(ended_ns, wire.whole_ns) < sure_ns
    what = "is in the client's log and not in the captures, or the other way round"
    subject = f"{flow.name} captured"
    check = _bad_transfers(evidence, subject, begun | ended, what)
    more = _unlogged(evidence, flow, reported, key, wire)
    if not more or check.measured:
        return check
    note = f"the captures have {more} that the client's log lacks"
    return make_check("transfers", subject, evidence.virtual_time, more, 0, note=note)


def _unlogged(
    evidence: Evidence, flow: FlowRecord, reported: Reported, key: Integers, wire: OnTheWire
) -> int:
    """Count connections, or requests on them, that the client's log lacks."""
    workload = evidence.trial.scenario.flow(flow.name).workload
    assert workload is not None
    known = len(np.unique(key[key > 0]))
    if workload.connections is Connections.KEPT:
        known = workload.pool
    begun = int((reported.begun_ns >= 0).sum())
    return max(0, wire.connections - known, wire.requests - begun)


def _times(
    evidence: Evidence, flow: FlowRecord, reported: Reported, key: Integers, wire: OnTheWire
) -> Check:
    """Check the beginning or end that is furthest off, of the transfers that both have.

    A request may wait in the client's own shaped queue before a capture sees it.
    """
    zero = epoch_ns(evidence.trial)
    known = len(wire.begun_ns)
    begun_ns = wire.begun_ns
    if _keeps_connections(evidence, flow):
        waited = held_back(key, reported.begun_ns[:known], wire)
        begun_ns = np.where(waited, reported.begun_ns[:known], begun_ns)
    pairs = (
        (reported.begun_ns[:known], begun_ns, own_queue_ns(evidence, flow, "receiver")),
        (reported.ended_ns[:known], wire.whole_ns, 0),
    )
    worst, measured, expected, which = 0, 0.0, 0.0, 0
    for logged, captured, wait_ns in pairs:
        off = np.maximum(logged - captured, captured - logged - wait_ns)
        off = np.where((logged >= 0) & (captured >= 0), np.maximum(off, 0), 0)
        place = int(off.argmax()) if len(off) else 0
        if len(off) and off[place] > worst:
            worst, which = int(off[place]), place
            measured, expected = ((int(each[place]) - zero) / 1e9 for each in (logged, captured))
    note = f"transfer {which}" if worst else ""
    return make_check(
        "transfer times",
        flow.name,
        evidence.virtual_time,
        measured,
        expected,
        deviation=worst / 1e9,
        note=note,
    )


def _keeps_connections(evidence: Evidence, flow: FlowRecord) -> bool:
    workload = evidence.trial.scenario.flow(flow.name).workload
    return workload is not None and workload.connections is Connections.KEPT


def held_back(
    key: Integers, logged_ns: Integers, wire: OnTheWire, stop_ns: int = FOREVER
) -> Booleans:
    """Find requests that left after the client made them, but not after the answer before theirs.

    Those that never left are among them if that answer had not come by the flow's stop.

    Nagle's algorithm holds a small packet back until the one before it is acknowledged, which the
    last byte of its answer does at the latest.
    """
    order = np.argsort(key, kind="stable")
    same = key[order[1:]] == key[order[:-1]]
    answered_ns = np.full(len(key), NEVER, dtype=np.int64)
    whole_ns = np.where(wire.whole_ns == NEVER, FOREVER, wire.whole_ns)
    answered_ns[order[1:][same]] = whole_ns[order[:-1][same]]
    begun_ns = np.where(wire.begun_ns == NEVER, stop_ns, wire.begun_ns)
    held = (logged_ns >= 0) & (begun_ns > logged_ns) & (begun_ns <= answered_ns)
    return np.asarray(held)


def check_retransmissions(
    evidence: Evidence, flow: FlowRecord, reported: Reported, wire: OnTheWire
) -> Check:
    """Check the server's TCP_INFO, summed over its connections, against the sender's capture.

    Where nothing was delivered there may have been no connection: nobody accepted it, and TCP_INFO
    of none has the SYN-ACKs that were sent again.
    """
    counted, subject = server_retransmissions(evidence.trial, flow.name), f"{flow.name} server"
    if counted is None or wire.retransmissions is None:
        return unknown("retransmissions", subject, NOT_CAPTURED)
    delivered = reported.received[: len(wire.retransmissions)] > 0
    most, least = int(wire.retransmissions.sum()), int(wire.retransmissions[delivered].sum())
    off = max(counted - most, least - counted, 0)
    return make_check(
        "retransmissions", subject, evidence.virtual_time, counted, most, deviation=off
    )
