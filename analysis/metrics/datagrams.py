"""What becomes of a flow's datagrams on their way: losses, jitter, and overtaking.

They are compared at the captures of both ends, so that what the flow's programs report of
themselves does not matter: a program of the user's own and QUIC are measured like iperf3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.captures.flow_tables import Metric
from analysis.captures.packet_matching import lost_packets, match_data
from analysis.metrics.metric import ColumnGroup, Floats, MeasuredFlow, Row
from analysis.trials.packets import NAN

DATAGRAM_COLUMNS = (
    Metric(
        "datagrams_lost",
        "packets",
        "datagrams with data that a UDP flow (also QUIC) sent in the measured interval and that "
        "never reached the receiver's capture; those that the sender's own queue dropped were not "
        "sent (`drop_rate` has them). Not known for TCP",
        count=True,
    ),
    Metric("datagram_loss_rate", "", "the same as a share of the datagrams sent"),
    Metric(
        "jitter_ms",
        "ms",
        "the interarrival jitter of RFC 3550, section 6.4.1, of a UDP flow's datagrams between the "
        "captures of both ends: a running mean, with a gain of 1/16, of how much the one-way "
        "delays of successive arrivals differ; the mean of that over the datagrams sent in the "
        "measured interval",
    ),
    Metric(
        "datagrams_reordered",
        "packets",
        "datagrams sent in the measured interval that arrive after one that was sent later "
        "(RFC 4737, section 3.3)",
        count=True,
    ),
)
JITTER_GAIN = 1 / 16


def interarrival_jitter(delays: Floats) -> Floats:
    """Return the jitter after each arrival, in the unit of the delays, which are in that order."""
    jitters, jitter = np.zeros(len(delays)), 0.0
    for place, change in enumerate(np.abs(np.diff(delays)).tolist(), start=1):
        jitter += (change - jitter) * JITTER_GAIN
        jitters[place] = jitter
    return jitters


def overtaken(sent_places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the arrivals behind one that was sent later, from their places as sent."""
    is_overtaken: npt.NDArray[np.bool_] = sent_places < np.maximum.accumulate(sent_places)
    return is_overtaken


def _measure(flow: MeasuredFlow) -> Row:
    sender, receiver = flow.packets_at("sender"), flow.packets_at("receiver")
    if flow.is_tcp or sender is None or receiver is None:
        return {}
    holds = flow.interval.holds
    sent = int((holds(sender.data["time_ns"]) & (sender.data["payload"] > 0)).sum())
    gone = lost_packets(sender.data, receiver.data, flow.packets.end_ns())
    lost = int(holds(gone["time_ns"]).sum())
    arrived = match_data(sender.data, receiver.data)
    measured = holds(arrived.before_ns)
    jitter = interarrival_jitter(arrived.delay_ns / 1e6)[measured]
    return {
        "datagrams_lost": lost,
        "datagram_loss_rate": lost / sent if sent else NAN,
        "jitter_ms": float(jitter.mean()) if len(jitter) > 1 else NAN,
        "datagrams_reordered": int(overtaken(arrived.before_row)[measured].sum()),
    }


DATAGRAM_GROUP = ColumnGroup(DATAGRAM_COLUMNS, _measure)
