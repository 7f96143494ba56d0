"""How far each check may be off: one table, with the reasons.

The guest's time is virtual: what happens there is exact, and the tolerances say what is left
of clocks and rounding. A host is a machine that others use too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

ANY = math.inf  # by itself never a reason to throw a trial away
GUEST = "guest"


@dataclass(frozen=True)
class Limits:
    """Deviations up to `suspect` are valid, up to `invalid` suspect, beyond it invalid."""

    suspect: float
    invalid: float


@dataclass(frozen=True)
class Rule:
    """A check's unit, its limits on either engine, and why they are what they are.

    `relative`: the limits are parts of what was expected, not amounts of the unit.
    """

    name: str
    unit: str
    guest: Limits
    host: Limits
    reason: str
    relative: bool = False

    def limits(self, engine: str) -> Limits:
        """Those of the engine."""
        return self.guest if engine == GUEST else self.host


NONE = Limits(0, 0)
_HOST_ONLY = "; in the guest no time passes while it works, so it is not asked there"


def _exact(name: str, unit: str, reason: str) -> Rule:
    return Rule(name, unit, NONE, NONE, reason)


# In the order of cause and effect: of checks that are equally bad the first one is named.
RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        _exact("capture drops", "packets", "a packet that tcpdump lost is missing from every sum"),
        _exact("capture file", "packets", "the file holds what tcpdump says that it wrote"),
        _exact("variant", "", "another congestion control is another experiment"),
        _exact("options", "", "what was agreed on in the handshake holds for the connection"),
        _exact("configuration", "settings", "nothing may change a setting while flows run"),
        _exact("offloads", "bytes", "a packet larger than the MTU was put together by an offload"),
        _exact("capture gaps", "packets", "a packet that is seen further on came by here too"),
        Rule(
            "cpu",
            "of the time",
            Limits(ANY, ANY),
            Limits(0.1, 0.9),
            "seconds in which a core was busy to 95 %: it may be the one that forwards"
            + _HOST_ONLY,
        ),
        Rule(
            "softirq",
            "of the cores",
            Limits(ANY, ANY),
            Limits(0.25, 0.75),
            "forwarding happens in softirqs; near a whole core packets wait for them" + _HOST_ONLY,
        ),
        Rule(
            "steal",
            "of the cores",
            Limits(ANY, ANY),
            Limits(0.02, 0.2),
            "time that the hypervisor gave to others stops every clock of ours" + _HOST_ONLY,
        ),
        Rule(
            "scheduling delay",
            "ms",
            Limits(ANY, ANY),
            Limits(1, 10),
            "mean wait for a core, a time slice: a millisecond is a kernel's tick" + _HOST_ONLY,
        ),
        Rule(
            "start",
            "s",
            Limits(1e-6, 1e-3),
            Limits(0.1, 0.5),
            "guest: to the clock's nanoseconds; host: iperf3 must be started, some tens of ms",
        ),
        Rule(
            "stop",
            "s",
            Limits(1e-6, 1e-3),
            Limits(0.02, 0.2),
            "guest: to the clock's nanoseconds; host: the scheduler's wait for one process",
        ),
        Rule(
            "sampling",
            "ms",
            Limits(0.001, ANY),
            Limits(10, ANY),
            "a longer gap between samples hides what happened in it, but changes no packet",
        ),
        Rule(
            "idle RTT",
            "ms",
            Limits(0.01, 1),
            Limits(0.5, 2),
            "guest: netem's and the timers' rounding; host: some tenths of a ms in the kernel's "
            "queues and the scheduler",
        ),
        _exact("radio", "", "another signal is another link, and who left it is not on it"),
        Rule(
            "radio share",
            "of the time",
            Limits(0.05, 0.15),
            Limits(0.05, 0.15),
            "the other stations' frames come at random: some thousand of them, of about a ms",
        ),
        _exact("video", "", "another transport or another rule is another experiment"),
        _exact("video bytes", "bytes", "a file that came is as long as the server has it"),
        _exact("video capture", "bytes", "what the player was given has come in packets"),
        _exact("background sessions", "sessions", "as many of either kind as were asked for"),
        Rule(
            "background RTT",
            "ms",
            Limits(0.01, 1),
            Limits(0.5, 2),
            "as the idle RTT, from what TCP saw: at least what was drawn for the session, at most "
            "that and all that the queues hold",
        ),
        _exact("background window", "bytes", "no more than the window was ever allowed"),
        Rule(
            "background failures",
            "connections",
            Limits(0, ANY),
            Limits(0, ANY),
            "a file that did not come is load that was missing; a crowded link may do that",
        ),
        _exact("memory", "times", "TCP that runs short of memory shrinks windows everywhere"),
        Rule(
            "rate",
            "Mbit/s",
            Limits(0.001, 0.01),
            Limits(0.01, 0.02),
            "guest: htb counts ticks of 64 ns, less than a thousandth of a full frame's time; "
            "host: late timers, which htb's bucket makes up for; 2 % is half a figure's line",
            relative=True,
        ),
        Rule(
            "gaps",
            "of the gaps",
            Limits(0.001, 0.05),
            Limits(0.1, 0.5),
            "gaps between backlogged packets more than 10 % off the serialisation time "
            "(after Mininet-HiFi, CoNEXT 2012); host: timers fire late and the bucket catches up",
        ),
        _exact("buffer", "", "a queue that holds more than its limit is another queue"),
        Rule(
            "tail drop",
            "",
            Limits(0, 0.05),
            Limits(0.02, 0.1),
            "a FIFO drops where it is full and nowhere else; host: packets between two captures",
            relative=True,
        ),
        _exact(
            "losses by chance",
            "segments",
            "the dropper counts each segment that it takes, and the captures around it lack those "
            "and no others; a queue between them may have dropped some more",
        ),
        _exact("loss", "packets", "links without a queue lose nothing: their netem has no limit"),
        Rule(
            "conservation",
            "packets",
            NONE,
            Limits(0, 2),
            "what goes into a queue comes out, is dropped or is still inside; host: packets that "
            "pass while the last sample is taken",
        ),
        Rule("queue counters", "packets", NONE, Limits(0, 2), "the queue counts what tcpdump sees"),
        Rule(
            "retransmissions",
            "segments",
            NONE,
            Limits(1, 5),
            "both count segments whose bytes were sent before (the kernel also those that the "
            "sender's own queue refused, which it counts apart: TCPRetransFail); host: what is "
            "sent between a sample and its time stamp",
        ),
        Rule(
            "goodput",
            "Mbit/s",
            Limits(1e-6, 1e-3),
            Limits(0.01, 0.05),
            "guest: iperf3 has read every byte that the receiver's capture shows delivered; host: "
            "bytes that wait to be read when it is told to end",
            relative=True,
        ),
        Rule(
            "iperf3 intervals",
            "Mbit/s",
            Limits(1e-3, 0.02),
            Limits(0.05, 0.5),
            "guest: as goodput, but for what arrives within 0.1 ms of the end of the second; host: "
            "iperf3's clock begins some ms after the handshake",
            relative=True,
        ),
        Rule(
            "ECN",
            "packets",
            NONE,
            Limits(0, 2),
            "a mark of the queue is a CE in the capture and in the receiver's count",
        ),
        _exact("ECN echo", "", "a receiver that saw CE says so, and no other does"),
        Rule(
            "outstanding",
            "segments",
            NONE,
            Limits(5, 50),
            "sent and not acknowledged by capture and by TCP_INFO, at the samples; host: what "
            "passes between a sample and its time stamp",
        ),
        Rule(
            "window",
            "segments",
            Limits(3, 10),
            Limits(5, 50),
            "outstanding beyond cwnd while nothing is lost: a tail loss probe may send one more "
            "(RFC 8985 7.3), the first duplicate ACKs two (RFC 3042)",
        ),
        Rule(
            "RTT",
            "ms",
            Limits(0.1, 1),
            Limits(2, 20),
            "median distance of TCP_INFO's srtt from the same average of the capture's round "
            "trips; guest: srtt is kept in eighths of a µs; host: from the capture to TCP and back",
        ),
    )
}
