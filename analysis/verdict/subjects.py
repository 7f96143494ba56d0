"""What each check measures, and what it holds that against: in words, for tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """Two sides of one comparison, and who tells each."""

    measured: str
    expected: str


# A row for each of tolerances.RULES, in its order.
SUBJECTS: Mapping[str, Subject] = {
    "capture drops": Subject("packets that tcpdump says it lost", "none"),
    "capture file": Subject("frames in the file", "what tcpdump says that it wrote"),
    "variant": Subject("what each flow's own socket ran", "what was asked"),
    "options": Subject("what each connection agreed on", "what was asked"),
    "configuration": Subject(
        "sysctls, qdiscs, classes, routes, MTUs, offloads after the flows",
        "the same before them, where they were verified",
    ),
    "offloads": Subject("the longest frame of each capture", "its interface's MTU"),
    "capture gaps": Subject("packets that a later capture has and this one has not", "none"),
    "cpu": Subject("seconds in which a core was busy", "none"),
    "softirq": Subject("time in softirqs", "none"),
    "steal": Subject("time that the hypervisor took", "none"),
    "scheduling delay": Subject("mean wait of each of the trial's processes for a core", "none"),
    "start": Subject("a flow's first packet, or iperf3's start", "when it was asked for"),
    "stop": Subject("a flow's end", "when it was asked for"),
    "sampling": Subject("the longest gap between samples", "the interval asked for"),
    "idle RTT": Subject("echoes on each path before the flows", "the delays asked for"),
    "radio": Subject("the station's signal, and whether it stayed", "what was asked"),
    "radio share": Subject("air that the other stations had", "what was asked"),
    "video": Subject("transport and rule of the playback", "what was asked"),
    "video bytes": Subject("bytes of each file that came", "its size at the server"),
    "video capture": Subject("bytes that the player was given", "payload in its capture"),
    "background sessions": Subject("sessions of either kind", "what was asked"),
    "background RTT": Subject("the shortest that each session's sockets saw", "what was drawn"),
    "background window": Subject("the widest window of a session", "what was asked"),
    "background failures": Subject("files that did not come", "none"),
    "memory": Subject("times that TCP ran short of memory", "none"),
    "rate": Subject("departures of the backlogged bottleneck, captured", "the rate asked for"),
    "gaps": Subject(
        "gaps between backlogged packets, captured; packets of a sender's own shaped queue",
        "the serialisation time; the token bucket's",
    ),
    "buffer": Subject("the largest backlog of the samples", "the limit asked for"),
    "tail drop": Subject("the smallest backlog that met a drop, captured", "the limit and one"),
    "losses by chance": Subject(
        "segments missing between the captures around the dropper", "its own count"
    ),
    "loss": Subject("packets missing on links without a queue, captured", "none"),
    "conservation": Subject(
        "packets into the queue, captured",
        "packets out of it, captured; dropped and inside, by its counters",
    ),
    "queue counters": Subject("packets that the queue says it sent", "those in its capture"),
    "retransmissions": Subject(
        "TCP_INFO at every sample; the host's TcpRetransSegs; iperf3's sum",
        "segments sent again in the sender's capture",
    ),
    "goodput": Subject("bytes by iperf3's server", "bytes delivered in the receiver's capture"),
    "iperf3 intervals": Subject("each interval of iperf3's server", "the receiver's capture then"),
    "ECN": Subject("CE in the captures", "the queue's marks; the receiving host's InCEPkts"),
    "ECN echo": Subject("acknowledgements with ECE", "CE that had arrived, or none"),
    "outstanding": Subject("TCP_INFO's unacked at every sample", "the sender's capture"),
    "window": Subject("what is in flight when new data leaves, captured", "TCP_INFO's cwnd"),
    "RTT": Subject("TCP_INFO's srtt", "the same average of the capture's round trips"),
}
