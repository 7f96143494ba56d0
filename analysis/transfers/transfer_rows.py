"""One row per transfer of a trial's captured workloads, cached with the trial."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.transfers.size_classes import size_class
from analysis.transfers.transfer_reports import Planned, read_planned, read_reported
from analysis.transfers.wire_transfers import OnTheWire, on_the_wire
from analysis.trials.packets import TrialPackets, epoch_ns
from testbed.scenario.model import Flow
from testbed.scenario.network import PathSummary
from testbed.scenario.transfers import draw_sessions, ideal_s
from testbed.scenario.variations import drawn
from testbed.scenario.workload import Sessions
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

Integers = npt.NDArray[np.int64]

FINISHED, UNFINISHED, NOT_BEGUN = "finished", "unfinished", "not begun"

TRANSFER_COLUMNS = (
    Metric("flow", "", "the workload's name in the scenario"),
    Metric("variant", "", "the TCP variant of its sender"),
    Metric("number", "", "the transfer's place in the planned list, from 0", count=True),
    Metric("session", "", "its session, from 0; not known where none waits for another"),
    Metric("size_bytes", "bytes", "the data asked for; not known of a transfer without an end"),
    Metric("size_class", "", "short: less than 10 kB; medium: up to 1 MB; long: more"),
    Metric(
        "state",
        "",
        "finished; unfinished: its last byte had not come when the flow stopped; not begun: "
        "nothing of it was sent",
    ),
    Metric(
        "due_s",
        "s",
        "when it was to begin, on the trial's clock; not known of a session's transfers but the "
        "first, which follow the one before",
    ),
    Metric(
        "start_s",
        "s",
        "when it began, on the trial's clock: its connection's SYN, over kept connections its "
        "request, at the capture of the host that asks",
    ),
    Metric(
        "completion_s",
        "s",
        "from then until its last byte was there, at the same capture",
    ),
    Metric(
        "ideal_s",
        "s",
        "the least that it could take in an empty network: a round trip of the path's delays for "
        "the handshake of a new connection, another for the request, and the time that the "
        "path's slowest link takes to send all frames (full ones, 66 bytes of headers for each "
        "1448 of data); of htb, those before the last one, less the burst that it lets through "
        "at once (burst_bytes of the trial's record). Slow start is not in it",
    ),
    Metric(
        "slowdown",
        "",
        "completion_s over ideal_s: 1 at least; not known where that is 0, on a path without delay",
    ),
    Metric(
        "retransmissions",
        "packets",
        "its packets that were sent again, its connection's SYN-ACK included, at the sender's "
        "capture",
        count=True,
    ),
)


def workloads(trial: Trial, *, captured: bool = True) -> list[FlowRecord]:
    """Return the trial's workloads: those that are captured, or all."""
    names = {
        flow.name
        for flow in trial.scenario.flows
        if flow.workload is not None and (flow.captured or not captured)
    }
    return [record for record in trial.record.flows if record.name in names]


def transfer_table(trial: Trial, packets: TrialPackets | None) -> pd.DataFrame:
    """Return a row for each transfer; none where there are no packets, or no workloads."""
    of_flows = workloads(trial) if packets else []
    parts = [_rows_of(trial, packets, record) for record in of_flows if packets]
    empty = pd.DataFrame(columns=[column.name for column in TRANSFER_COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else empty


def _listed(trial: Trial, record: FlowRecord) -> tuple[Planned, Integers]:
    """Return a workload's list, and the places in it that have a row.

    How many transfers sessions come to depends on the network: those that began have a row.
    """
    planned = read_planned(trial, record.name) or Planned(*(np.zeros((3, 0), dtype=np.int64)))
    places = np.arange(len(planned.size))
    if _sessions_of(trial, record) is not None:
        reported = read_reported(trial, record.name)
        begun = reported.port[: len(places)] > 0 if reported else np.zeros(0, dtype=np.bool_)
        places = np.flatnonzero(begun)
    return planned, places


def _sessions_of(trial: Trial, record: FlowRecord) -> Sessions | None:
    workload = trial.scenario.flow(record.name).workload
    return workload.arrivals.sessions if workload else None


def _rows_of(trial: Trial, packets: TrialPackets, record: FlowRecord) -> pd.DataFrame:
    flow = trial.scenario.flow(record.name)
    planned, places = _listed(trial, record)
    wire = wire_of(trial, packets, record)
    zero = epoch_ns(trial)
    size, sessions = planned.size[places], _sessions_of(trial, record)
    due = record.started_s + planned.after_ns[places] / 1e9
    rows = pd.DataFrame(
        {
            "flow": record.name,
            "variant": flow.variant or "",
            "number": places,
            "session": planned.session[places] if sessions else np.nan,
            "size_bytes": np.where(size < 0, np.nan, size),
            "size_class": np.where(size < 0, "", size_class(size)),
            "state": NOT_BEGUN,
            "due_s": np.where(planned.opens_session[places], due, np.nan) if sessions else due,
            "start_s": np.nan,
            "completion_s": np.nan,
            "ideal_s": _ideals(trial, flow, planned.session[places], size),
            "slowdown": np.nan,
            "retransmissions": np.nan,
        },
        index=places,
    )
    if wire is not None:
        _fill(rows, wire, zero, zero + round(record.stopped_s * 1e9))
    return rows


def _fill(rows: pd.DataFrame, wire: OnTheWire, zero_ns: int, stop_ns: int) -> None:
    """Add what the captures show; transfers that the client does not log stay as they are."""
    logged = rows.index[rows.index < len(wire.begun_ns)]
    begun_ns, whole_ns = wire.begun_ns[logged], wire.whole_ns[logged]
    begun = begun_ns >= 0
    whole = begun & (whole_ns >= 0) & (whole_ns <= stop_ns)
    rows.loc[logged[begun], "state"] = UNFINISHED
    rows.loc[logged[whole], "state"] = FINISHED
    rows.loc[logged[begun], "start_s"] = (begun_ns[begun] - zero_ns) / 1e9
    rows.loc[logged[whole], "completion_s"] = (whole_ns[whole] - begun_ns[whole]) / 1e9
    rows["slowdown"] = rows["completion_s"] / rows["ideal_s"].where(rows["ideal_s"] > 0)
    if wire.retransmissions is not None:
        rows.loc[logged, "retransmissions"] = wire.retransmissions[logged]


def _ideals(trial: Trial, flow: Flow, session: Integers, size: Integers) -> list[float]:
    assert flow.workload is not None
    path = drawn(trial.scenario).network.path(flow.src, flow.dst)
    alike = (q.burst_bytes for q in trial.record.queues if q.rate_mbit == path.rate_mbit)
    burst, sessions = max(alike, default=0), flow.workload.arrivals.sessions
    paths = [path]
    if sessions is not None:
        sessions_drawn = draw_sessions(sessions, f"{trial.scenario.seed} {flow.name}")
        rtts_ms = (path.rtt_ms if each.rtt_ms is None else each.rtt_ms for each in sessions_drawn)
        paths = [PathSummary(path.rate_mbit, rtt_ms) for rtt_ms in rtts_ms]
    return [
        math.nan if bytes_ < 0 else ideal_s(flow.workload, paths[place], bytes_, burst)
        for place, bytes_ in zip(session.tolist(), size.tolist(), strict=True)
    ]


def wire_of(trial: Trial, packets: TrialPackets, record: FlowRecord) -> OnTheWire | None:
    """Find a workload's transfers on the wire; None if it was not captured, or left no log."""
    workload = trial.scenario.flow(record.name).workload
    planned, reported = read_planned(trial, record.name), read_reported(trial, record.name)
    receiver, sender = packets.flow("receiver", record), packets.flow("sender", record)
    if workload is None or planned is None or reported is None or receiver is None:
        return None
    return on_the_wire(record.src_ports, planned, reported, workload.connections, receiver, sender)
