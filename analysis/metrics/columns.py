"""What each column of metrics.csv means: written once, here, and printed with every report."""

from __future__ import annotations

from analysis.metrics.metric import Metric
from analysis.metrics.video_columns import VIDEO

METRICS = (
    Metric("experiment", "", "name of the experiment"),
    Metric("trial", "", "the trial's directory"),
    Metric("engine", "", "where it ran: guest (own kernel, virtual time) or host"),
    Metric("status", "", "ok, failed or unsupported; only ok has numbers"),
    Metric(
        "verdict",
        "",
        "whether the numbers are to be trusted: valid, suspect or invalid, the worst of the "
        "trial's checks (verdict.json); statistics leave invalid trials out",
    ),
    Metric("why", "", "what the worst check found; empty where all are valid"),
    Metric("topology", "", "the network"),
    Metric("queue", "", "the bottleneck's queue and its limit"),
    Metric("flow", "", "the flow's name in the scenario; parallel connections are one flow"),
    Metric("kind", "", "tcp; cbr: UDP at a constant bit rate; or video"),
    Metric("src", "", "the node that sends the data"),
    Metric("dst", "", "the node that receives the data"),
    Metric("variant", "", "the TCP variant that the scenario asks for"),
    Metric("variant_seen", "", "the congestion control that the sender's socket reported"),
    Metric("label", "", "what tells the trial from the others of its experiment, for people"),
    Metric("axes", "", "where the trial lies on its experiment's axes: `name=value; …`"),
    Metric(
        "setting",
        "",
        "a hash of the scenario without its seed and this flow's own variant: rows that agree "
        "in it and in the variant are repeats",
    ),
    Metric("seed", "", "the scenario's seed", count=True),
    Metric("start_s", "s", "when the flow started, on the trial's clock"),
    Metric(
        "duration_s",
        "s",
        "the measured interval: from the flow's start, or from the scenario's measure_from_s "
        "where that is later, to the flow's stop. What is said of the whole capture below is "
        "said of it from measure_from_s on",
    ),
    Metric(
        "throughput_mbps",
        "Mbit/s",
        "bits of the Ethernet frames (without preamble and checksum) in the data's direction "
        "at the receiver's capture within the measured interval, over the interval",
    ),
    Metric(
        "goodput_mbps",
        "Mbit/s",
        "bytes delivered in order to the receiver within the measured interval, each once "
        "(TCP: the advance of the contiguous sequence numbers at the receiver's capture; "
        "UDP: the payload received), over the interval",
    ),
    Metric(
        "sent_packets",
        "packets",
        "packets with data at the sender's capture, retransmissions included, "
        "over the whole capture",
        count=True,
    ),
    Metric(
        "received_packets",
        "packets",
        "packets with data at the receiver's capture, over the whole capture",
        count=True,
    ),
    Metric(
        "drop_rate",
        "",
        "of the flow's packets in the data's direction that entered the bottleneck, the part "
        "that did not leave it; packets that may still be inside when the captures end do "
        "not count. Where a CBR flow starts at the bottleneck itself: of the packets that its "
        "kernel numbered (IP's identification, first to last), the part that is missing behind "
        "the queue; none for a TCP flow there",
    ),
    Metric(
        "retransmissions",
        "packets",
        "Wireshark's tcp.analysis.retransmission in the data's direction at the sender's "
        "capture; fast and spurious ones included",
        count=True,
    ),
    Metric(
        "fast_retransmissions",
        "packets",
        "Wireshark's tcp.analysis.fast_retransmission, as above",
        count=True,
    ),
    Metric(
        "spurious_retransmissions",
        "packets",
        "Wireshark's tcp.analysis.spurious_retransmission, as above",
        count=True,
    ),
    Metric(
        "retransmitted",
        "packets",
        "segments that the sender's kernel sent again, by its own count (TCP_INFO's "
        "total_retrans, over the flow's connections) in the measured interval",
        count=True,
    ),
    Metric(
        "timeouts",
        "",
        "times that the retransmit timer fired: the kernel's count (TCPTimeouts) of the "
        "sending host over the whole trial; none known where that host sends several TCP "
        "connections",
        count=True,
    ),
    Metric(
        "timeouts_seen",
        "",
        "the same for this flow in the measured interval, at the sender's capture: the segment "
        "that the receiver waits for is sent again when nothing has been acknowledged for a "
        "timeout and no acknowledgement has just come, or once more than recovery explains. A "
        "tail loss probe of the only segment outstanding looks the same",
        count=True,
    ),
    Metric(
        "recoveries",
        "",
        "times that duplicate acknowledgements had the segment sent again that the receiver "
        "waits for, in the measured interval: each begins a fast recovery (Tahoe: a slow start). "
        "SACK begins some without that segment, and BBR many: those are not seen",
        count=True,
    ),
    Metric(
        "segment_bytes",
        "B",
        "payload of most of the flow's data packets at the sender's capture",
        count=True,
    ),
    Metric(
        "loss_rate",
        "",
        "of the packets with data that the sender sent in the measured interval, retransmissions "
        "included, the part that never came by at the receiver's capture. Where the receiver was "
        "not captured: the part that was sent again before it was acknowledged (not "
        "Wireshark's spurious_retransmission)",
    ),
    Metric(
        "loss_events",
        "",
        "loss events that began in the measured interval. One begins with the first lost packet "
        "that leads from congestion avoidance to a recovery or a timeout; all losses belong to it "
        "of what had been sent when its first retransmission was, or when a timeout ended it "
        "(Parvez, Mahanti, Williamson)",
        count=True,
    ),
    Metric("loss_event_rate", "", "loss events over packets sent with data: p of the models"),
    Metric(
        "losses_per_event",
        "packets",
        "mean number of packets lost in a loss event, retransmissions included: m of the models",
    ),
    Metric(
        "slow_start_events",
        "",
        "the same as loss events, but leading out of slow start: the window was below ssthresh "
        "at the last sample of the socket before the retransmission. Where sockets were not "
        "sampled: the first event of a connection",
        count=True,
    ),
    Metric(
        "srtt_mean_ms",
        "ms",
        "mean of the smoothed round trip over the samples of the sender's socket (TCP_INFO's rtt) "
        "in the measured interval: RTT of the models. It leaves out how long acknowledgements wait "
        "for a repair, which rtt_mean_ms has in it",
    ),
    Metric(
        "rto_mean_ms",
        "ms",
        "mean of the retransmit timer's length over the samples of the sender's socket (TCP_INFO's "
        "rto) in the measured interval, except while it is backed off",
    ),
    Metric(
        "rto_at_timeout_ms",
        "ms",
        "mean of the same at the last sample before each timeout that is the first for its data: "
        "RTO of the models",
    ),
    Metric(
        "timeout_wait_ms",
        "ms",
        "mean time, at the sender's capture, from the last acknowledgement of new data to each of "
        "these timeouts. Shorter than the timer where not each acknowledgement sets it anew",
    ),
    Metric(
        "out_of_order",
        "packets",
        "Wireshark's tcp.analysis.out_of_order in the data's direction at the receiver's capture",
        count=True,
    ),
    Metric(
        "duplicate_acks",
        "packets",
        "Wireshark's tcp.analysis.duplicate_ack against the data's direction at the sender's "
        "capture",
        count=True,
    ),
    Metric(
        "rtt_min_ms",
        "ms",
        "smallest round-trip time: Wireshark's tcp.analysis.ack_rtt of acknowledgements of "
        "data at the sender's capture, over the whole capture",
    ),
    Metric("rtt_mean_ms", "ms", "mean of the round-trip times"),
    Metric("rtt_p95_ms", "ms", "95th percentile of the round-trip times"),
    Metric(
        "recovery_latency_mean_ms",
        "ms",
        "mean time from a segment's first sending to the acknowledgement that covers it, at the "
        "sender's capture, over the whole capture: the time that a loss's repair takes is in it",
    ),
    Metric(
        "owd_mean_ms",
        "ms",
        "mean one-way delay: the same data packet at the sender's and at the receiver's "
        "capture, over the whole capture",
    ),
    Metric("owd_p95_ms", "ms", "95th percentile of the one-way delays"),
    Metric(
        "queue_mean_ms",
        "ms",
        "mean time in the bottleneck: the same data packet at its two captures; none where "
        "the flow starts at the bottleneck itself",
    ),
    Metric("queue_p95_ms", "ms", "95th percentile of the times in the bottleneck"),
    Metric(
        "convergence_s",
        "s",
        "since the flow's start, the first moment from which its throughput at the receiver, in "
        "bins of 1 s, stays within 20 % of its mean over the second half; none where it has not "
        "settled by the middle",
    ),
    Metric("share", "", "the flow's goodput over the sum of all the trial's flows"),
    Metric(
        "jain",
        "",
        "Jain's index over the goodputs of the trial's TCP flows (of all flows where none "
        "is TCP): 1 is equal",
    ),
    *VIDEO,
)

COLUMNS = tuple(metric.name for metric in METRICS)
COUNTS = tuple(metric.name for metric in METRICS if metric.count)
TEXTS = COLUMNS[: COLUMNS.index("seed")]
NUMBERS = tuple(name for name in COLUMNS if name not in TEXTS)

# Rows that agree in these are one cell: the same trial but for its seed.
CELL = ("experiment", "topology", "queue", "engine", "variant", "flow", "setting")
