"""One row per transfer of a trial's workloads, kept with the trial."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.metrics.metric import Metric
from analysis.transfers.size_classes import size_class
from analysis.transfers.transfer_reports import Planned, read_planned, read_reported
from analysis.transfers.wire_transfers import OnTheWire, on_the_wire
from analysis.trials.packets import TrialPackets, epoch_ns
from testbed.scenario.drawn_network import drawn
from testbed.scenario.model import Flow
from testbed.scenario.planned.planned_transfers import ideal_s
from testbed.scenario.planned.way import way
from testbed.store import FlowRecord, Trial

FINISHED, UNFINISHED, NOT_BEGUN = "finished", "unfinished", "not begun"

COLUMNS = (
    Metric("flow", "", "the workload's name in the scenario"),
    Metric("variant", "", "the TCP variant of its sender"),
    Metric("number", "", "the transfer's place in the planned list, from 0", count=True),
    Metric("size_bytes", "bytes", "data that were asked for", count=True),
    Metric("size_class", "", "short: less than 10 kB; medium: up to 1 MB; long: more"),
    Metric(
        "state",
        "",
        "finished; unfinished: its last byte had not come when the flow stopped; not begun: "
        "nothing of it was sent",
    ),
    Metric("due_s", "s", "when it was to begin, on the trial's clock"),
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
        "the handshake of a new connection, another for the request, and the time for which the "
        "path's slowest link holds the last frame back: the bytes of the frames before it (full "
        "ones, 66 bytes of headers for each 1448 of data), less the burst that its shaper lets "
        "through at once (burst_bytes of the trial's record), over its rate. Slow start is not "
        "in it",
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


def workloads(trial: Trial) -> list[FlowRecord]:
    """The trial's flows that are workloads."""
    kinds = {flow.name for flow in trial.scenario.flows if flow.workload is not None}
    return [record for record in trial.record.flows if record.name in kinds]


def transfer_table(trial: Trial, packets: TrialPackets | None) -> pd.DataFrame:
    """Return a row for each planned transfer; none where there are no packets, or no workloads."""
    found = workloads(trial) if packets else []
    parts = [_of_flow(trial, packets, record) for record in found if packets]
    empty = pd.DataFrame(columns=[column.name for column in COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else empty


def _of_flow(trial: Trial, packets: TrialPackets, record: FlowRecord) -> pd.DataFrame:
    flow = trial.scenario.flow(record.name)
    planned = read_planned(trial, record.name) or Planned(*(np.zeros((2, 0), dtype=np.int64)))
    found = wire_of(trial, packets, record)
    zero = epoch_ns(trial)
    rows = pd.DataFrame(
        {
            "flow": record.name,
            "variant": flow.variant or "",
            "number": np.arange(len(planned.size)),
            "size_bytes": planned.size,
            "size_class": size_class(planned.size),
            "state": NOT_BEGUN,
            "due_s": record.started_s + planned.at_ns / 1e9,
            "start_s": np.nan,
            "completion_s": np.nan,
            "ideal_s": _ideals(trial, flow, planned),
            "slowdown": np.nan,
            "retransmissions": np.nan,
        }
    )
    if found is not None:
        _fill(rows, found, zero, zero + round(record.stopped_s * 1e9))
    return rows


def _fill(rows: pd.DataFrame, found: OnTheWire, zero_ns: int, stop_ns: int) -> None:
    """What the captures say; transfers that the client does not report stay as they are."""
    own = rows.index[: len(found.begun_ns)]
    begun = found.begun_ns >= 0
    whole = begun & (found.whole_ns >= 0) & (found.whole_ns <= stop_ns)
    rows.loc[own[begun], "state"] = UNFINISHED
    rows.loc[own[whole], "state"] = FINISHED
    rows.loc[own[begun], "start_s"] = (found.begun_ns[begun] - zero_ns) / 1e9
    took = (found.whole_ns[whole] - found.begun_ns[whole]) / 1e9
    rows.loc[own[whole], "completion_s"] = took
    rows["slowdown"] = rows["completion_s"] / rows["ideal_s"].where(rows["ideal_s"] > 0)
    if found.retransmissions is not None:
        rows.loc[own, "retransmissions"] = found.retransmissions


def _ideals(trial: Trial, flow: Flow, planned: Planned) -> list[float]:
    assert flow.workload is not None
    path = way(drawn(trial.scenario).topology, flow.src, flow.dst)
    alike = (q.burst_bytes for q in trial.record.queues if q.rate_mbit == path.rate_mbit)
    burst = max(alike, default=0)
    return [ideal_s(flow.workload, path, size, burst) for size in planned.size.tolist()]


def wire_of(trial: Trial, packets: TrialPackets, record: FlowRecord) -> OnTheWire | None:
    """A workload's transfers on the wire; None if it was not captured, or left no log."""
    workload = trial.scenario.flow(record.name).workload
    planned, reported = read_planned(trial, record.name), read_reported(trial, record.name)
    receiver, sender = packets.flow("receiver", record), packets.flow("sender", record)
    if workload is None or planned is None or reported is None or receiver is None:
        return None
    return on_the_wire(planned, reported, workload.connections, receiver, sender)
