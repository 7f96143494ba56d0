"""The table of checks: what each compares, how far that may be off, and why.

In virtual time everything is exact, and the tolerances cover what is left of clocks and rounding.
In real time the machine also does other work.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.scenario.network import FRAME_BYTES

ANY = math.inf  # on its own never a reason to discard a trial


@dataclass(frozen=True)
class Limits:
    """Deviations up to `suspect` are valid, up to `invalid` suspect, beyond it invalid."""

    suspect: float
    invalid: float


EXACTLY = Limits(0, 0)
UNLIMITED = Limits(ANY, ANY)


@dataclass(frozen=True)
class CheckRule:
    """One check: its two sides in words, its limits, and the reason for them.

    `relative`: the limits are fractions of the expected value, not amounts of the unit.
    """

    name: str
    unit: str
    measured: str
    expected: str
    virtual: Limits
    real: Limits
    reason: str
    relative: bool = False

    def limits(self, virtual_time: bool) -> Limits:
        """Return the limits in the trial's kind of time."""
        return self.virtual if virtual_time else self.real

    @functools.cached_property
    def decides(self) -> tuple[object, ...]:
        """The part of the row that a verdict depends on: no prose."""
        limits = (*dataclasses.astuple(self.virtual), *dataclasses.astuple(self.real))
        return (self.name, self.unit, *limits, self.relative)


def _exact(name: str, unit: str, measured: str, expected: str, reason: str) -> CheckRule:
    return CheckRule(name, unit, measured, expected, EXACTLY, EXACTLY, reason)


def _busy_machine(name: str, unit: str, measured: str, real: Limits, reason: str) -> CheckRule:
    """Make a rule that is checked only in real time."""
    reason += "; in virtual time no time passes while the machine works, so this is not checked"
    return CheckRule(name, unit, measured, "none", UNLIMITED, real, reason)


# Causes before effects: among equally bad checks, the first one is named.
CHECK_RULES: Mapping[str, CheckRule] = {
    rule.name: rule
    for rule in (
        _exact(
            "files",
            "files",
            "files that are damaged or missing",
            "none",
            "a file that is not what the trial recorded gives other numbers, or none",
        ),
        _exact(
            "capture drops",
            "packets",
            "packets that the capture reports as lost",
            "none",
            "a packet that a capture lost is missing from every count",
        ),
        _exact(
            "capture file",
            "packets",
            "frames in the file",
            "frames that the capture reports as written",
            "the file holds everything that was captured",
        ),
        _exact(
            "kernel",
            "",
            "the version of Linux in the guest, or the name of your own kernel",
            "the one that the scenario names",
            "TCP differs between kernels",
        ),
        _exact(
            "variant",
            "",
            "the congestion control that each flow's own socket ran",
            "the one requested",
            "another congestion control is another experiment",
        ),
        _exact(
            "options",
            "",
            "the TCP options that each connection agreed on",
            "those requested",
            "the options agreed on in the handshake hold for the whole connection",
        ),
        _exact(
            "configuration",
            "settings",
            "sysctls, qdiscs, classes, routes, MTUs and offloads after the flows",
            "the same before the flows, when they were verified; of TCP's other settings, that of "
            "most hosts",
            "no setting may change while flows run",
        ),
        _exact(
            "offloads",
            "bytes",
            "the longest frame of each capture",
            "its interface's MTU",
            "a packet larger than the MTU was assembled by an offload",
        ),
        _exact(
            "capture gaps",
            "packets",
            "packets that a later capture has and this one lacks",
            "none",
            "a packet that is seen further along the path has passed this point too",
        ),
        _busy_machine(
            "cpu",
            "of the time",
            "seconds in which a core was busy",
            Limits(0.1, 0.9),
            "seconds in which a core was at least 95 % busy: it may be the one that forwards",
        ),
        _busy_machine(
            "softirq",
            "of the cores",
            "time in softirqs",
            Limits(0.25, 0.75),
            "forwarding happens in softirqs; close to a whole core, packets wait for them",
        ),
        _busy_machine(
            "steal",
            "of the cores",
            "time taken by the hypervisor",
            Limits(0.02, 0.2),
            "time that the hypervisor gives to others stops every clock of the machine",
        ),
        _busy_machine(
            "scheduling delay",
            "ms",
            "mean wait of each of the trial's processes for a core",
            Limits(1, 10),
            "mean wait for a core per time slice: a millisecond is one tick of a kernel",
        ),
        CheckRule(
            "start",
            "s",
            "a flow's first packet, or the start of iperf3",
            "the scheduled start",
            Limits(1e-6, 1e-3),
            Limits(0.1, 0.5),
            "virtual time: the clock's nanoseconds; real time: starting iperf3 takes some tens of "
            "ms",
        ),
        CheckRule(
            "stop",
            "s",
            "a flow's end",
            "the scheduled end",
            Limits(1e-6, 1e-3),
            Limits(0.02, 0.2),
            "virtual time: the clock's nanoseconds; real time: one process waits for the scheduler",
        ),
        CheckRule(
            "sampling",
            "ms",
            "the longest gap between samples, or to a flow's end",
            "the configured interval",
            Limits(0.001, ANY),
            Limits(10, ANY),
            "a longer gap between samples hides what happened in it, but changes no packet",
        ),
        CheckRule(
            "link changes",
            "ms",
            "the time at which a link was changed, and read back",
            "its schedule",
            Limits(0.001, 0.1),
            Limits(5, 50),
            "virtual time: the clock's nanoseconds; real time: one process waits for the "
            "scheduler, and the kernel's answer takes a moment",
        ),
        CheckRule(
            "idle RTT",
            "ms",
            "the RTT of echoes on each path before the flows",
            "the configured delays",
            Limits(0.01, 1),
            Limits(0.5, 2),
            "virtual time: rounding by netem and the timers; real time: some tenths of a ms in the "
            "kernel's queues and the scheduler",
        ),
        _exact(
            "radio",
            "",
            "the station's signal, and whether it stayed associated",
            "the configured signal",
            "another signal makes another link, and a station that has left is not on it",
        ),
        CheckRule(
            "radio share",
            "of the time",
            "airtime of the other stations",
            "the configured share",
            Limits(0.05, 0.15),
            Limits(0.05, 0.15),
            "the other stations' frames come at random: some thousand of them, of about a ms each",
        ),
        _exact(
            "video",
            "",
            "transport and rule of the playback",
            "those requested",
            "another transport or another rule is another experiment",
        ),
        _exact(
            "video bytes",
            "bytes",
            "bytes received of each file",
            "its size at the server",
            "a file that was received is as long as it is at the server",
        ),
        _exact(
            "video capture",
            "bytes",
            "bytes handed to the player",
            "payload in its capture",
            "every byte handed to the player has arrived in a packet",
        ),
        _exact(
            "program",
            "",
            "the exit status of a command flow's program",
            "0, or ended by the trial",
            "a client that failed has not done what was asked, and a server must last as long",
        ),
        _exact(
            "pauses",
            "packets",
            "packets that a CBR flow sent in its pauses, captured",
            "none",
            "on and off take turns from the first packet on, to the nanosecond in virtual time; "
            "those that waited in the sender's own queue, or for a late timer, have left in time",
        ),
        _exact(
            "other connections",
            "connections",
            "connections, and senders of UDP, that are no flow's, captured",
            "none",
            "traffic that nobody asked for takes its share, and a program that talks on another "
            "port than it said is not in the flow's row",
        ),
        CheckRule(
            "session RTT",
            "ms",
            "the minimum RTT of each session's sockets",
            "the RTT drawn for the session",
            Limits(0.01, 1),
            Limits(0.5, 2),
            "as for the idle RTT, but seen by TCP: at least the RTT drawn for the session, at most "
            "that plus all that the queues hold; by timestamps, a millisecond less",
        ),
        _exact(
            "session window",
            "bytes",
            "the widest window of any session",
            "the configured limit",
            "the window never exceeds its limit",
        ),
        CheckRule(
            "session failures",
            "connections",
            "files that were not received",
            "none",
            Limits(0, ANY),
            Limits(0, ANY),
            "a file that was not received is missing load; on a crowded link that happens",
        ),
        _exact(
            "transfers",
            "transfers",
            "transfers of a workload that are not alike in its list, its client's log and the "
            "captures",
            "none",
            "every transfer that the seed draws is begun in its time, logged, and seen in the "
            "captures, finished in both or in neither",
        ),
        CheckRule(
            "transfer times",
            "s",
            "the beginning or end of a transfer by the client's log",
            "the same in its host's capture",
            Limits(1e-6, 1e-3),
            Limits(0.02, 0.2),
            "virtual time: the clock's nanoseconds; real time: the client waits for the scheduler; "
            "Nagle's algorithm may delay a request on a kept connection until the answer before it",
        ),
        _exact(
            "memory",
            "times",
            "times that TCP ran short of memory",
            "none",
            "TCP that runs short of memory shrinks windows everywhere",
        ),
        CheckRule(
            "bucket",
            "of the buffer or BDP",
            "htb's bucket, beyond a frame",
            "small beside the buffer and beside the BDP",
            Limits(0.1, ANY),
            Limits(0.1, ANY),
            "what the bucket holds leaves at once, and the queue never sees it; in real time a "
            "late timer needs it",
        ),
        CheckRule(
            "rate",
            "Mbit/s",
            "departures from the backlogged bottleneck in its capture",
            "the configured rate",
            Limits(0.001, 0.01),
            Limits(0.01, 0.02),
            "virtual time: an exact link keeps to it, and htb counts ticks of 64 ns, less than a "
            "thousandth of a full frame's time; real time: late timers, for which htb's bucket "
            "compensates; 2 % is half the width of a line in a figure",
            relative=True,
        ),
        CheckRule(
            "gaps",
            "of the gaps",
            "gaps between backlogged packets, captured; packets of a sender's own shaped queue",
            "the serialisation time; of htb, what its bucket allows",
            Limits(0.001, 0.05),
            Limits(0.1, 0.5),
            "gaps between backlogged packets more than 10 % off the serialisation time (after "
            "Mininet-HiFi, CoNEXT 2012); real time: timers fire late and the bucket catches up",
        ),
        _exact(
            "sending",
            "packets",
            "packets that left an exact link before it can have sent them, captured",
            "none",
            "a packet leaves when its last bit does",
        ),
        CheckRule(
            "windows",
            "bytes",
            "what a window of 2 or 5 packets carried beyond the rate, captured",
            "nothing; of htb, a full bucket and the frame that overdraws it",
            Limits(25, FRAME_BYTES / 10),
            Limits(FRAME_BYTES, 20 * FRAME_BYTES),
            "packets leave one after the other; virtual time: a nanosecond at both ends, at 100 "
            "Gbit/s; real time: timers",
        ),
        _exact(
            "trace",
            "packets",
            "packets that left at another time than their opportunity's, captured",
            "none",
            "when each packet leaves follows from the trace and from when packets arrived",
        ),
        CheckRule(
            "capacity",
            "bytes",
            "what left in any tenth of a second beyond a full bucket, captured",
            "what the schedule or the trace let the link carry",
            EXACTLY,
            Limits(FRAME_BYTES, 20 * FRAME_BYTES),
            "a link carries no more than it can at that time; real time: a change that is made "
            "some ms late, and timers",
        ),
        _exact(
            "down",
            "packets",
            "packets that left the queue while its link was down and arrived, captured",
            "none",
            "a link that is down loses everything",
        ),
        _exact(
            "buffer",
            "",
            "the largest backlog in the samples",
            "the configured limit",
            "a queue that holds more than its limit is not the configured one",
        ),
        CheckRule(
            "tail drop",
            "",
            "the smallest backlog found by a dropped packet, captured",
            "the limit plus one",
            Limits(0, 0.05),
            Limits(0.02, 0.1),
            "a FIFO drops only when it is full; real time: packets between two captures; captures "
            "do not have pings, of which a few may wait",
            relative=True,
        ),
        CheckRule(
            "phase",
            "service times",
            "the range from which seeds draw the delays of a network whose full FIFO several "
            "regular flows share",
            "one of the bottleneck's service times, or more",
            UNLIMITED,
            UNLIMITED,
            "who loses packets at a full FIFO depends on the round trip within one packet's time; "
            "a note, which affects no verdict",
        ),
        CheckRule(
            "few packets",
            "packets",
            "packets with data that a flow sent in a measured interval in which they are fewer, or "
            "of less than a second",
            "a hundred, or more",
            UNLIMITED,
            UNLIMITED,
            "means, percentiles and rates of few packets depend on where the interval begins and "
            "ends; a note, which affects no verdict",
        ),
        _exact(
            "losses by chance",
            "segments",
            "segments missing between the captures around the dropper",
            "the dropper's own count",
            "the dropper counts every segment that it drops, and exactly those are missing between "
            "the captures around it; a queue between them may have dropped some more",
        ),
        _exact(
            "loss",
            "packets",
            "packets missing on links without a queue, captured",
            "none",
            "links without a queue lose nothing: their netem has no limit",
        ),
        _exact(
            "overtaking",
            "packets",
            "packets that overtook others on links, captured",
            "at most those that the links' netem put ahead",
            "nothing overtakes on a link but what netem, asked for it, sends ahead; what it "
            "sends ahead of nothing does not show",
        ),
        CheckRule(
            "share ahead",
            "deviations",
            "the packets that netem put ahead",
            "the chance times those that crossed it, in standard deviations of a binomial",
            Limits(4, 6),
            Limits(4, 6),
            "netem throws dice for each packet: one trial in 16,000 is further off by chance",
        ),
        CheckRule(
            "conservation",
            "packets",
            "packets into the queue, captured",
            "packets out of it, captured; dropped and inside, by its counters",
            EXACTLY,
            Limits(0, 2),
            "every packet that enters a queue leaves it, is dropped or is still inside; real time: "
            "packets that pass while the last sample is taken",
        ),
        CheckRule(
            "queue counters",
            "packets",
            "packets that the queue counts as sent",
            "packets in its capture",
            EXACTLY,
            Limits(0, 2),
            "the queue counts the packets that a capture sees, but for those that leave while the "
            "captures end",
        ),
        CheckRule(
            "retransmissions",
            "segments",
            "TCP_INFO at every sample; the host's TcpRetransSegs; the sums of iperf3 and of a "
            "workload's server",
            "retransmitted segments in the sender's capture",
            EXACTLY,
            Limits(1, 5),
            "both count segments whose bytes were sent before (the kernel also those that the "
            "sender's own queue refused, which it counts separately: TCPRetransFail, but for those "
            "of a buffer of which the queue took some, which are among its drops; and one on "
            "the control network for each flow whose server did not begin); real time: segments "
            "sent between a sample and its time stamp",
        ),
        CheckRule(
            "receive buffer",
            "times",
            "times that a receiver's full buffer made it throw away what had arrived",
            "none",
            Limits(0, ANY),
            Limits(0, ANY),
            "where segments that wait for a lost one fill the buffer, the captures show them as "
            "received, and they are sent again as if they had been lost",
        ),
        CheckRule(
            "receive window",
            "of the time",
            "time in which the receiver's window limited a flow, by TCP_INFO's rwnd_limited; of "
            "programs, whose sockets are not sampled, by the windows in the sender's capture",
            "none, unless the scenario sets window_bytes",
            Limits(0.2, ANY),
            Limits(0.2, ANY),
            "a flow that its receiver limits shows neither what its congestion control nor what "
            "the network can do",
        ),
        CheckRule(
            "send buffer",
            "of the time",
            "samples at which a full send buffer left the sender without a whole segment",
            "none",
            Limits(0.2, ANY),
            Limits(0.2, ANY),
            "as above: a flow that its own host limits fills no network",
        ),
        CheckRule(
            "goodput",
            "Mbit/s",
            "bytes by iperf3's server, or by a call's receiver",
            "bytes delivered in the receiver's capture",
            Limits(1e-6, 1e-3),
            Limits(0.01, 0.05),
            "virtual time: iperf3 has read every byte that the receiver's capture shows delivered; "
            "real time: bytes that wait to be read when iperf3 is told to end",
            relative=True,
        ),
        CheckRule(
            "iperf3 intervals",
            "Mbit/s",
            "each interval of iperf3's server",
            "the same interval in the receiver's capture",
            Limits(1e-3, 0.02),
            Limits(0.05, 0.5),
            "virtual time: as for goodput, except for bytes that arrive within 0.1 ms of the end "
            "of the second; real time: iperf3's clock begins some ms after the handshake",
            relative=True,
        ),
        CheckRule(
            "ECN",
            "packets",
            "CE in the captures",
            "the queue's marks; the receiving host's InCEPkts",
            EXACTLY,
            Limits(0, 2),
            "a mark set by the queue is a CE in the capture and in the receiver's count",
        ),
        _exact(
            "ECN echo",
            "",
            "acknowledgements with ECE",
            "CE that had arrived, or none",
            "a receiver echoes CE if it saw one, and only then",
        ),
        CheckRule(
            "outstanding",
            "segments",
            "TCP_INFO's unacked at every sample",
            "the sender's capture",
            EXACTLY,
            Limits(5, 50),
            "segments sent and not acknowledged, by the capture and by TCP_INFO, at the samples; "
            "real time: packets that pass between a sample and its time stamp",
        ),
        CheckRule(
            "window",
            "segments",
            "segments in flight when new data leaves, captured",
            "TCP_INFO's cwnd",
            Limits(3, 10),
            Limits(5, 50),
            "segments outstanding beyond cwnd while nothing is lost: a tail loss probe may send "
            "one more (RFC 8985 7.3), the first duplicate ACKs two (RFC 3042)",
        ),
        _exact(
            "window offered",
            "bytes",
            "the widest window that a flow's receiver offers, captured",
            "the configured limit, or less",
            "a window that is set never exceeds its limit: without the guest's patch the kernel "
            "forgets it when the receiver's buffer grows",
        ),
        CheckRule(
            "RTT",
            "ms",
            "TCP_INFO's srtt",
            "the same average of the RTTs in the capture",
            Limits(0.1, 1),
            Limits(2, 20),
            "median difference between TCP_INFO's srtt and the same average of the RTTs in the "
            "capture; virtual time: srtt is kept in eighths of a µs; real time: from the capture "
            "to TCP and back",
        ),
        CheckRule(
            "iperf3 seconds",
            "s",
            "the end of each interval of iperf3's client and server",
            "a whole second",
            Limits(1e-3, 0.02),
            Limits(0.1, 1),
            "a program that stands still, or has no time, neither reads nor sends meanwhile; real "
            "time: one process waits for the scheduler",
        ),
        CheckRule(
            "delay",
            "ms",
            "the time that a packet took between two captures with no queue in between, captured",
            "the delays of the links in between",
            Limits(0.01, 0.1),
            Limits(0.5, 2),
            "as for the idle RTT, for each packet of the flows; real time: their median",
        ),
        CheckRule(
            "packets",
            "bytes",
            "the longest segment, or any datagram, of a flow of iperf3's, captured",
            "the size that the scenario gives it; of segments, less what TCP's options take",
            EXACTLY,
            EXACTLY,
            "packets of another size are other traffic",
        ),
        CheckRule(
            "bytes",
            "bytes",
            "what a flow of a number of bytes sent, each counted once, captured",
            "that number, if it ended by itself, and up to a block of iperf3's more",
            EXACTLY,
            EXACTLY,
            "iperf3 sends whole blocks",
        ),
        _exact(
            "checksums",
            "packets",
            "the kernel's count of wrong checksums of IP, TCP and UDP, of the host with most",
            "none",
            "a damaged packet is seen by a capture and not by TCP",
        ),
        CheckRule(
            "pace",
            "deviations",
            "the mean gap of a CBR flow's packets, captured",
            "that of its rate, in standard deviations of the mean of gaps so drawn",
            Limits(5, 10),
            Limits(10, 100),
            "gaps are drawn evenly around that of the rate: in virtual time one trial in a million "
            "is further off by chance, in real time timers are late",
        ),
        _exact(
            "scenario",
            "",
            "rates, queues, times, ends and controls that the trial's record has",
            "those of its scenario",
            "what was set up by other settings is another trial, however exactly it was",
        ),
    )
}
