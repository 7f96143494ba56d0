"""The sessions of a workload: each one's results, its transfers by the log, and the total load.

None of it needs captures: it comes from the programs' reports and the hosts' counters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.transfers.transfer_reports import read_planned, read_reported, read_served
from analysis.trials.packets import epoch_ns
from analysis.trials.samples import read_counters
from testbed.scenario.network import FRAME_OVERHEAD_BYTES
from testbed.scenario.transfers import draw_sessions
from testbed.scenario.variations import drawn
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

SENDER_COUNTERS = {"TcpOutSegs", "TcpRetransSegs", "TcpExtTCPSynRetrans"}
RECEIVER_COUNTERS = {"TcpInSegs", "IpExtInOctets"}


@dataclass(frozen=True)
class CarriedLoad:
    """A workload's load on the network.

    In Mbit/s of Ethernet frames that arrived, as a share of the slowest link, and the share of the
    packets that was lost.
    """

    mbit: float
    share: float
    loss_rate: float


def load_of(trial: Trial, flow: FlowRecord) -> CarriedLoad | None:
    """Compute the load from the counters of the flow's hosts, which must have no other flow."""
    flow_scenario = trial.scenario.flow(flow.name)
    hosts = {flow_scenario.src, flow_scenario.dst}
    others = (each for each in trial.scenario.flows if each is not flow_scenario)
    sender, receiver = (
        read_counters(trial, flow_scenario.src),
        read_counters(trial, flow_scenario.dst),
    )
    if any({each.src, each.dst} & hosts for each in others):
        return None
    if not (sender.keys() >= SENDER_COUNTERS and receiver.keys() >= RECEIVER_COUNTERS):
        return None
    # a SYN-ACK that is sent again counts twice
    sent = sender["TcpOutSegs"] + sender["TcpRetransSegs"] - sender["TcpExtTCPSynRetrans"]
    arrived = receiver["TcpInSegs"]
    frames = receiver["IpExtInOctets"] + FRAME_OVERHEAD_BYTES * arrived
    mbit = frames * 8e-6 / (flow.stopped_s - flow.started_s)
    rate_mbit = drawn(trial.scenario).network.path(flow_scenario.src, flow_scenario.dst).rate_mbit
    return CarriedLoad(mbit, mbit / rate_mbit, (sent - arrived) / sent if sent else 0.0)


def logged_transfers(trial: Trial, flow: FlowRecord) -> pd.DataFrame | None:
    """Return the transfers that began by the client's log; None without the log or the list."""
    planned, reported = read_planned(trial, flow.name), read_reported(trial, flow.name)
    if planned is None or reported is None or len(planned.size) != len(reported.port):
        return None
    took = np.where(reported.ended_ns < 0, np.nan, (reported.ended_ns - reported.begun_ns) / 1e9)
    rows = pd.DataFrame(
        {
            "session": planned.session,
            "size_bytes": np.where(planned.size < 0, np.nan, planned.size),
            "start_s": (reported.begun_ns - epoch_ns(trial)) / 1e9,
            "completion_s": took,
            "received_bytes": reported.received,
            "lost": reported.lost,
        }
    )
    return rows[reported.begun_ns >= 0]


def session_rows(trial: Trial, flow: FlowRecord) -> pd.DataFrame | None:
    """Return a row for each session: what the seed drew, and what came of it."""
    workload = trial.scenario.flow(flow.name).workload
    log, served = logged_transfers(trial, flow), read_served(trial, flow.name)
    sessions = workload.arrivals.sessions if workload else None
    if sessions is None or log is None or served is None or len(served) != sessions.number:
        return None
    planned = draw_sessions(sessions, f"{trial.scenario.seed} {flow.name}")
    rows = pd.DataFrame(
        {
            "kind": ["long" if each.is_long else "web" for each in planned],
            "start_s": [flow.started_s + each.start_ns / 1e9 for each in planned],
            "rtt_ms": [np.nan if each.rtt_ms is None else each.rtt_ms for each in planned],
            "rtt_min_ms": [port["min_rtt_us"] / 1e3 or np.nan for port in served],
        }
    )
    names = ("connections", "control", "window_bytes", "sent_bytes", "segments", "retransmissions")
    ports = pd.DataFrame(served)
    rows = rows.assign(**{name: ports[name] for name in names})
    by_session = log.groupby("session")
    finished = log[log["completion_s"].notna()].groupby("session")
    totals = {
        "transfers": finished.size(),
        "failures": by_session["lost"].sum(),
        "transfer_s": finished["completion_s"].sum(),
        "received_bytes": by_session["received_bytes"].sum(),
    }
    return rows.assign(
        **{name: total.reindex(rows.index, fill_value=0) for name, total in totals.items()}
    )
