"""The network that a capture's TCP flow crossed, estimated: rate, round trip, buffer and loss.

Everything comes from acknowledgements that a capture near the sender has; near the receiver they
say nothing of the way. The rate is what is acknowledged while packets wait: what arrives faster
than the slowest link sends lengthens the round trip. Packets that are lost while the round trip is
near its longest were refused by a full buffer; the others were lost by chance. Where the rate
varies, the longest round trips are at the lowest rate, and neither can be told: the buffer is at
least the bytes that were acknowledged while a packet waited, and losses have an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.captures.flow_tables import endpoint
from analysis.captures.tcp import ACK, SYN, TIMED, Array, PacketArrays, read_capture
from analysis.statistics.distributions import beta_share
from analysis.statistics.estimates import share_interval
from testbed.errors import TestbedError, UsageError
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue

MIN_FITTED_SEGMENTS = 100  # of data: with fewer, the flow hardly leaves its start
FIT_RTTS = 4  # round trips in which a rate is measured: longer than what acknowledgements come in
MIN_RATE_WINDOW_S = 0.1
MIN_BUSY = 3  # such windows
WAITING = 0.1  # a share of the least round trip: with this much more, packets wait
FULL = 0.7  # of the longest wait: a loss there is the buffer's
MTU_FRAME = 1514  # a longer frame is several packets that the sender's card cut later
HEADERS = 66  # of such a packet: Ethernet, IP, TCP with timestamps
MAX_SPREAD = 1.2  # of the middle half of the rates: recovery from losses makes a few windows low
MAX_CHANCE = 0.01  # that losses by chance fall so often into the longest waits
RATE_VARIED = "the rate changed while packets waited: a link that varies, or one that is shared"


@dataclass(frozen=True)
class FittedNumber:
    """A number with an interval: what 90 % of its measurements lie in.

    NaN above: there is no bound; below, too: the number is not known, and another stands for it.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FittedNetwork:
    """What a flow says of its path."""

    capture: str
    flow: str
    duration_s: float
    sent_bytes: int
    rate_mbit: FittedNumber
    rtt_ms: FittedNumber
    buffer_kb: FittedNumber
    loss_percent: FittedNumber
    waiting: float  # the share of the time in which packets wait
    full_losses: int
    chance_losses: int  # where the rate varied, all: they may be the buffer's
    notes: tuple[str, ...]

    @property
    def rate_varied(self) -> bool:
        """Whether no single rate stands for the slowest link."""
        return RATE_VARIED in self.notes

    def scenario(self) -> Scenario:
        """Return a flow over a path of this rate, round trip, buffer and loss."""
        chance = round(self.loss_percent.value / 100, 6)
        loss = GilbertElliott(to_bad=chance, to_good=round(1 - chance, 6)) if chance else None
        quarter_ms = round(self.rtt_ms.value / 4, 3)
        limit = max(2 * MTU_FRAME, round(self.buffer_kb.value * 1000))
        back = Direction(delay_ms=quarter_ms)
        slow = Direction(
            rate_mbit=float(f"{self.rate_mbit.value:.4g}"),
            delay_ms=quarter_ms,
            queue=Queue("bfifo", limit_bytes=limit),
        )
        graph = Graph(
            nodes=(Node("sender"), Node("router", NodeKind.ROUTER), Node("receiver")),
            links=(
                Link(("sender", "router"), Direction(delay_ms=quarter_ms, loss=loss), back),
                Link(("router", "receiver"), slow),
            ),
        )
        flow = Flow("tcp", FlowKind.TCP, "sender", "receiver", variant="cubic")
        return Scenario("fitted", graph, (flow,), duration_s=float(max(1, round(self.duration_s))))


def fit(path: Path, stream: int | None = None, *, tunnels: bool = False) -> FittedNetwork:
    """Fit the path of a TCP flow: of the one with most data unless a number is given."""
    capture = read_capture(path, tunnels=tunnels)
    packets = capture.part[capture.part.places("protocol", "tcp")]
    streams, totals = _payloads(packets)
    if stream is None and len(streams):
        stream = int(streams[totals.argmax()])
    if stream not in streams:
        known = f"TCP flows: 0 to {streams.max()}" if len(streams) else "it has no TCP packets"
        raise UsageError(f"{path}: no TCP flow {stream}", known)
    flow = _FlowPackets(packets[packets["stream"] == stream])
    if len(flow.data) < MIN_FITTED_SEGMENTS:
        raise TestbedError(
            f"{path}: flow {stream} has {len(flow.data)} segments of data, "
            f"{MIN_FITTED_SEGMENTS} are needed to tell a path by",
            "name another with --flow, or capture for longer",
        )
    beside = 1 - float(totals[streams == stream][0] / totals.sum())
    notes = (*capture.warnings, *_notes(flow, beside))
    return _fitted(path.name, flow, notes)


def _payloads(packets: PacketArrays) -> tuple[Array, Array]:
    """Return the numbers of the flows, and the bytes that each carries."""
    streams, places = np.unique(packets["stream"], return_inverse=True)
    return streams, np.bincount(places, packets["payload"], len(streams))


class _FlowPackets:
    """The two directions of a flow, and what follows from when packets were acknowledged."""

    def __init__(self, packets: PacketArrays) -> None:
        ends = packets["src"], packets["src_port"]
        first = (ends[0] == ends[0][0]) & (ends[1] == ends[1][0])
        one, other = packets[first], packets[~first]
        forward = one["payload"].sum() >= other["payload"].sum()
        self.sent, self.answers = (one, other) if forward else (other, one)
        self.data = self.sent[self.sent["payload"] > 0]
        self.name = " → ".join(
            endpoint(str(self.sent[f"{end}"][0]), int(self.sent[f"{end}_port"][0]))
            for end in ("src", "dst")
        )
        self.super_frames = float(np.mean(self.data["length"] > MTU_FRAME))
        timed = self.answers[self.answers[TIMED] & ~np.isnan(self.answers["ack_rtt_ms"])]
        timed = timed[(timed["flags"] & SYN) == 0]
        self.acked_s, self.rtt_ms = timed["time_ns"] / 1e9, timed["ack_rtt_ms"] + self.beyond_ms

    @property
    def beyond_ms(self) -> float:
        """The round trip from the capture to the sender and back, by the answers to the peer."""
        answered = self.sent[~np.isnan(self.sent["ack_rtt_ms"])]["ack_rtt_ms"]
        return float(answered.min()) if len(answered) else 0.0

    @property
    def frame_bytes(self) -> float:
        """The bytes on the wire for a byte of data."""
        size = self.data["payload"][self.data["length"] <= MTU_FRAME]
        segment = float(size.max()) if len(size) else MTU_FRAME - HEADERS
        return (segment + HEADERS) / segment

    def acknowledged(self) -> tuple[Array, Array]:
        """Return when more was acknowledged, and how many bytes by then."""
        answers = self.answers[(self.answers["flags"] & ACK) != 0]
        since = (answers["ack"].astype(np.int64) - int(answers["ack"][0])).astype(float)
        return answers["time_ns"] / 1e9, np.maximum.accumulate(np.unwrap(since, period=2**32))

    def most_waiting_kb(self, wait_ms: Array) -> float:
        """Return the most that waited at once: what was acknowledged while a packet waited.

        Where an acknowledgement was repeated meanwhile, the next one covers what came before.
        """
        times, acked = self.acknowledged()
        held = self.answers[self.answers["duplicate_ack"]]["time_ns"] / 1e9
        begin_s = self.acked_s - wait_ms / 1e3
        since = np.interp(self.acked_s, times, acked) - np.interp(begin_s, times, acked)
        first, last = np.searchsorted(held, begin_s), np.searchsorted(held, self.acked_s, "right")
        whole = since[first == last] * self.frame_bytes / 1e3
        return float(np.quantile(whole, 0.995)) if len(whole) else 0.0

    def losses_s(self) -> Array:
        """Return when packets were sent again that had been lost."""
        marks = ("retransmission", "out_of_order")
        again = self.data[marks[0]] | self.data[marks[1]]
        times_ns: Array = self.data[again & ~self.data["spurious_retransmission"]]["time_ns"]
        return times_ns / 1e9


def _notes(flow: _FlowPackets, beside: float) -> Iterator[str]:
    if flow.super_frames > 0.01:
        yield (
            f"{100 * flow.super_frames:.0f} % of the frames are longer than a packet: the sender's "
            "card cut them later, and the rate counts the headers that this adds"
        )
    if beside > 0.1:
        yield (
            f"other TCP flows carry {100 * beside:.0f} % of the capture's data: where they share "
            "the slowest link, its rate is higher than what this flow had"
        )


def _fitted(capture: str, flow: _FlowPackets, notes: tuple[str, ...]) -> FittedNetwork:
    if not len(flow.rtt_ms):
        raise TestbedError(
            f"{capture}: no acknowledgement of the flow times a round trip",
            "the capture needs both directions",
        )
    handshake = flow.answers["initial_rtt_ms"]
    if flow.beyond_ms > float(flow.rtt_ms.min()) / 2:
        raise TestbedError(
            f"{capture}: it was taken near the receiver of {flow.name}, where acknowledgements do "
            "not say how long packets waited",
            "name a capture taken at the sender",
        )
    shortest = [float(flow.rtt_ms.min()), *handshake[~np.isnan(handshake)][:1].tolist()]
    rtt = FittedNumber(min(shortest), min(shortest), max(shortest))
    rate, waiting, lines = _rate(flow, rtt.value)
    wait_ms = flow.rtt_ms - rtt.value
    longest_ms = float(np.quantile(wait_ms, 0.995))
    losses_s = flow.losses_s()
    waited = not math.isnan(rate.high)  # else a late acknowledgement looks like a wait
    varied = RATE_VARIED in lines  # then the longest waits are the slowest, not the fullest
    told = waited and not varied
    full = _waits_when_full(flow, wait_ms, losses_s, longest_ms) if told else losses_s[:0]
    by_chance = len(losses_s) - len(full)
    per_ms = rate.value / 8  # kB
    if len(full):
        low, value, high = np.quantile(full, (0.05, 0.5, 0.95)) * per_ms
        buffer = FittedNumber(float(value), float(low), float(high))
    elif waited:
        longest_kb = flow.most_waiting_kb(wait_ms) if varied else longest_ms * per_ms
        buffer = FittedNumber(longest_kb, longest_kb, math.nan)
    else:  # a product of rate and round trip stands for it
        buffer = FittedNumber(rtt.value * per_ms, math.nan, math.nan)
    loss = _share(by_chance, len(flow.data))
    if varied:  # any of them may be the buffer's
        loss = FittedNumber(0.0, 0.0, loss.high)
    return FittedNetwork(
        capture,
        flow.name,
        float(np.ptp(flow.sent["time_ns"])) / 1e9,
        int(flow.data["payload"].sum()),
        rate,
        rtt,
        buffer,
        loss,
        waiting,
        len(full),
        by_chance,
        (*notes, *lines),
    )


def _waits_when_full(
    flow: _FlowPackets, wait_ms: Array, losses_s: Array, longest_ms: float
) -> Array:
    """Return how long packets waited at losses by a full buffer.

    There are none unless losses are more frequent at the longest waits than chance makes them.
    """
    last = np.searchsorted(flow.acked_s, losses_s) - 1
    waits_ms = wait_ms[last[last >= 0]]
    full: Array = waits_ms[waits_ms >= FULL * longest_ms]
    if not len(full):
        return full
    share = float(np.mean(wait_ms >= FULL * longest_ms))
    # of as many losses or more, if chance chose when they happen
    probability = beta_share(len(full), len(waits_ms) - len(full) + 1, share)
    return full if probability < MAX_CHANCE else full[:0]


def _rate(flow: _FlowPackets, rtt_ms: float) -> tuple[FittedNumber, float, tuple[str, ...]]:
    """Return the rate in windows in which packets wait, and the share of these windows."""
    times, acked = flow.acknowledged()
    width_s = max(MIN_RATE_WINDOW_S, FIT_RTTS * rtt_ms / 1e3)
    edges = np.arange(times[0], times[-1], width_s)
    if len(edges) < 3:
        width_s = (times[-1] - times[0]) / 3
        edges = times[0] + width_s * np.arange(4)
    at = np.interp(edges, times, acked)
    rates = np.diff(at) * flow.frame_bytes * 8e-6 / width_s
    shortest = np.array(
        [
            flow.rtt_ms[(flow.acked_s >= begin) & (flow.acked_s < begin + width_s)].min(
                initial=np.inf
            )
            for begin in edges[:-1]
        ]
    )
    busy = np.isfinite(shortest) & (shortest > (1 + WAITING) * rtt_ms)
    waiting = float(busy.mean())
    held = flow.answers[flow.answers["duplicate_ack"]]["time_ns"] / 1e9
    whole = busy & (np.histogram(held, edges)[0] == 0)  # else an ACK covers what came before
    busy = whole if whole.sum() >= MIN_BUSY else busy
    if busy.sum() < MIN_BUSY:
        most = float(rates.max())
        line = "packets hardly ever waited: the slowest link is faster than this flow"
        return FittedNumber(most, most, math.nan), waiting, (line,)
    low, least, value, most, high = np.quantile(rates[busy], (0.05, 0.25, 0.5, 0.75, 0.95))
    lines = (RATE_VARIED,) if most > MAX_SPREAD * least else ()
    return FittedNumber(float(value), float(low), float(high)), waiting, lines


def _share(count: int, total: int) -> FittedNumber:
    """Return a percentage with its exact interval."""
    low, high = share_interval(count, total)
    return FittedNumber(100 * count / total, 100 * low, 100 * high)
