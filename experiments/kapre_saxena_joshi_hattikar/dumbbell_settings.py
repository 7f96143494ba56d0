"""The network that Kapre, Saxena and Joshi, Hattikar share: six nodes, five equal links.

    N1 sender1 ──┐                                  ┌── receiver1 N4
                 ├── N2 left ══════════ right N3 ───┤
    N5 sender2 ──┘                                  └── receiver2 N6

Every link has 10 Mbit/s, 10 ms and a queue of 10 packets. How the values that the papers
do not state were found: `experiments/kapre_saxena_joshi_hattikar/parameters.md`.
"""

from __future__ import annotations

from testbed.scenario.model import Flow, FlowKind, Profile
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Graph, Queue

RATE_MBIT = 10.0
# With the time that links take to send, an idle path's round trip is ns-2's 62.6 ms.
DELAY_MS = 10.0
# ns-2's limit of 10 includes the packet being sent, which is in a link's queue no longer
DROPTAIL = Queue("pfifo", limit_packets=9)
PACKET_BYTES = 1000
WINDOWS = {"small": 20 * PACKET_BYTES, "large": 1000 * PACKET_BYTES}  # ns-2's window_: 20, 1000
DUMBBELL_JITTER_MS = 100.0  # of the start times
# Of the links' delays, which the papers do not state: with drop-tail, drop rates and shares are a
# function of the round trip modulo a packet's service time (0.84 ms), and one delay is one phase.
DRAWN_SERVICE_TIMES = 1.0
GAP_S = 2.0  # from the first flow's start to that of the others
SETTLED_S = 10.0  # means leave out what was before, as those of ns-2 beside them do
# What makes the retransmission timer ns-2's, 200 ms in all: Linux adds this to the smoothed round
# trip, here that of the idle path, between the ends or over N2–N3 alone.
RTO_MIN_MS = {"ends": 137, "middle": 179}
SAMPLE_MS = 50.0

N1_N4, N5_N6 = ("sender1", "receiver1"), ("sender2", "receiver2")
MIDDLE = ("left", "right")  # N2–N3

DUMBBELL_LOADS = (2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0)  # the papers': each from 1 to 10
PAPER_VARIANTS = ("tahoe", "reno", "newreno", "vegas")


def network(queue: Queue = DROPTAIL, pairs: int = 1, more_ms: float = 0.0) -> Graph:
    """Return the network of five links, with `queue` before N2–N3, and a longer round trip."""
    return dumbbell(
        LinkSettings(RATE_MBIT, queue=queue, delay_ms=round(DELAY_MS + more_ms / 2, 3)),
        pairs=pairs,
        access=LinkSettings(delay_ms=DELAY_MS, rate_mbit=RATE_MBIT, queue=DROPTAIL),
    )


def settled_s(duration_s: float) -> float:
    """Return when a trial's means begin: shorter trials leave out a third."""
    return min(SETTLED_S, duration_s / 3)


def tcp(
    name: str,
    ends: tuple[str, str],
    variant: str,
    *,
    window: str,
    start_s: float,
    profile: str,
) -> Flow:
    """Return a TCP flow from one end to the other, or over the middle link alone."""
    way = "middle" if ends == MIDDLE else "ends"
    return Flow(
        name,
        FlowKind.TCP,
        *ends,
        start_s=start_s,
        variant=variant,
        window_bytes=WINDOWS[window],
        rto_min_ms=RTO_MIN_MS[way] if profile == Profile.NS2 else None,
    )


def cbr(src: str, dst: str, rate_mbit: float, start_s: float, stop_s: float | None = None) -> Flow:
    """Return a UDP flow at a constant bit rate, without congestion control."""
    return Flow(
        "cbr",
        FlowKind.CBR,
        src,
        dst,
        start_s=start_s,
        duration_s=None if stop_s is None else stop_s - start_s,
        rate_mbit=rate_mbit,
        packet_bytes=PACKET_BYTES,
    )
