"""The network that Kapre, Saxena and Joshi, Hattikar share: six nodes, five equal links.

    N1 sender1 ──┐                                  ┌── receiver1 N4
                 ├── N2 left ══════════ right N3 ───┤
    N5 sender2 ──┘                                  └── receiver2 N6

Every link has 10 Mbit/s, 10 ms and a queue of 10 packets. How the values that the papers
do not state were found: `docs/papers/parameters.md`.
"""

from __future__ import annotations

from testbed.scenario.model import (
    Bottleneck,
    Flow,
    FlowKind,
    Path,
    Queue,
    Topology,
    TopologyKind,
)

RATE_MBIT = 10.0
# 10 ms, plus half of the time that a link in ns-2 takes to send a segment and its ACK: an idle htb
# releases a packet at once. The round-trip time of an idle path is then ns-2's 62.6 ms.
DELAY_MS = 10.432
# ns-2's limit of 10 includes the packet being sent, which htb has already released
DROPTAIL = Queue("pfifo", limit_packets=9)
PACKET_BYTES = 1000
WINDOWS = {"small": 20 * PACKET_BYTES, "large": 1000 * PACKET_BYTES}  # ns-2's window_: 20, 1000
JITTER_MS = 100.0  # of the start times: the effect of a seed, besides the gaps of CBR
GAP_S = 2.0  # from the first flow's start to that of the others
SAMPLE_MS = 50.0

LOADS = tuple(float(mbit) for mbit in range(1, 11))
PAPER_VARIANTS = ("tahoe", "reno", "newreno", "vegas")
ALL_VARIANTS = (*PAPER_VARIANTS, "sack", "veno", "cubic", "bbr")


def network(queue: Queue = DROPTAIL, pairs: int = 1) -> Topology:
    """The five links; `queue` is the one before N2–N3."""
    return Topology(
        TopologyKind.DUMBBELL,
        Bottleneck(RATE_MBIT, queue, delay_ms=DELAY_MS),
        hosts=pairs,
        access=Path(delay_ms=DELAY_MS, rate_mbit=RATE_MBIT, queue=DROPTAIL),
    )


def tcp(name: str, pair: int, variant: str, window: str, start_s: float) -> Flow:
    """A flow from one end to the other, N1→N4 or N5→N6."""
    return Flow(
        name,
        FlowKind.TCP,
        f"sender{pair}",
        f"receiver{pair}",
        start_s=start_s,
        variant=variant,
        window_bytes=WINDOWS[window],
    )


def cbr(src: str, dst: str, rate_mbit: float, start_s: float, stop_s: float | None = None) -> Flow:
    """UDP at a constant bit rate, without congestion control."""
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
