"""Checks of queues: their rate, their limit, and their counters, against captures on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import CE, SYN
from analysis.trials.accurate_ecn import ECE, is_agreed, reported_marks
from analysis.trials.capacity import Capacity, capacity_of, largest_bucket_bytes, sending_ns
from analysis.trials.packets import capture_interface, epoch_ns
from analysis.trials.queue_transit import QueueTransit, flows_at_queue
from analysis.trials.samples import read_counters
from analysis.verdict.checks import (
    NO_ROW,
    NOT_CAPTURED,
    NOT_SAMPLED,
    Check,
    make_check,
    unknown,
)
from analysis.verdict.evidence import Evidence
from analysis.verdict.requested import interfaces
from testbed.scenario.model import Misbehaviour
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.queues import DISCIPLINES, polices
from testbed.scenario.variations import exact_delays
from testbed.store.records import QueueRecord

Integers = npt.NDArray[np.int64]

GAP_TOLERANCE = 0.1  # of the serialisation time
MIN_GAPS = 100  # fewer say little about a rate
MIN_FRAME_BYTES = 42  # the headers of Ethernet, IP and UDP
WINDOW_PACKETS = (2, 5)
BUCKET_SLACK_NS = 1100  # tc cuts a bucket's time to microseconds, the kernel to 64 ns
EDGES_NS = 2  # what times in nanoseconds may be off by, at both ends of a stretch


# Rates


def shaping(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check the rate while the queue was backlogged, and how even the gaps were.

    A frame that is neither TCP nor UDP, such as ICMP's answer to a datagram that came too late,
    makes one gap longer.
    """
    name = queue.interface
    capacity = capacity_of(evidence.trial, queue)
    if capacity.trace is not None or polices(queue.discipline):
        return  # changing_links.followed, policed
    if queue.most_at_once > 1:
        transit = transit.bursts
    bucket_size = largest_bucket_bytes(queue, capacity)
    gaps = (
        serialised(transit, idle_too=queue.most_at_once == 1)
        if queue.is_exact
        else backlogged(transit, bucket_size)
    )
    if len(gaps.bits) < MIN_GAPS:
        why = "never backlogged for long"
        yield unknown("rate", name, why)
        yield unknown("gaps", name, why)
        return
    expected = capacity.rates_at((gaps.since_ns - epoch_ns(evidence.trial)) / 1e9)
    if others := _other_frames(evidence, name):
        few = gaps.without_longest(others, expected)
        gaps, expected = gaps.at(few), expected[few]
    mean = queue.rate_mbit
    if capacity.changes:
        mean = float(gaps.bits.sum() / (gaps.bits / expected).sum())
    share = gaps.share_off(expected, GAP_TOLERANCE)
    measured = gaps.rate_mbit()
    # times are whole nanoseconds: an ACK takes 5.28 of them at 100 Gbit/s
    rounding = measured * len(gaps.bits) / float(gaps.gap_ns.sum())
    off = max(0.0, abs(measured - mean) - rounding)
    yield make_check("rate", name, evidence.virtual_time, measured, mean, deviation=off)
    yield make_check("gaps", name, evidence.virtual_time, share, 0)


def senders(evidence: Evidence) -> Iterator[Check]:
    """Check that a sender's own shaped queue sends packets one by one.

    TCP may hand several packets down as one.
    """
    for queue in evidence.trial.record.queues:
        parts = [
            pd.DataFrame({name: packets.data[name] for name in ("time_ns", "length")})
            for flow in evidence.flows
            if capture_interface(evidence.trial, "sender", flow) == queue.interface
            and (packets := evidence.packets.part("sender", flow)) is not None
        ]
        if not parts or queue.interface in {other.interface for other in evidence.bottlenecks}:
            continue
        rows = pd.concat(parts).sort_values("time_ns", kind="stable")
        capacity = capacity_of(evidence.trial, queue)
        if capacity.trace is not None:
            continue
        left_ns, length = (rows[name].to_numpy(dtype=np.int64) for name in ("time_ns", "length"))
        if queue.most_at_once == 1:
            yield _in_windows(evidence, queue, capacity, left_ns, length)
        if queue.is_exact:
            continue
        bucket_size = largest_bucket_bytes(queue, capacity)
        share = too_soon(left_ns, length, max(capacity.rate_mbit), bucket_size, GAP_TOLERANCE)
        note = "packets that left sooner than the rate lets them" if share else ""
        yield make_check("gaps", queue.interface, evidence.virtual_time, share, 0, note=note)


def windows(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check that no few packets left faster than at the rate, nor one before it can be sent."""
    capacity = capacity_of(evidence.trial, queue)
    if capacity.trace is not None or polices(queue.discipline):
        return
    if queue.most_at_once > 1:
        transit = transit.bursts
    yield _in_windows(evidence, queue, capacity, transit.left_ns, transit.length)
    if queue.is_exact:
        taken_ns = sending_ns(evidence.trial, queue, transit.left_ns, transit.length)
        early = transit.left_ns - transit.arrived_ns < taken_ns - EDGES_NS
        early &= ~transit.is_guess & (transit.left_ns <= evidence.judged_ns)
        if not transit.complete or transit.unmatched:
            early &= transit.arrived_ns != transit.left_ns  # their arrival is not known
        yield make_check("sending", queue.interface, evidence.virtual_time, int(early.sum()), 0)


def _in_windows(
    evidence: Evidence,
    queue: QueueRecord,
    capacity: Capacity,
    left_ns: Integers,
    length: Integers,
) -> Check:
    """Check the window of packets that carried most beyond the rate.

    From a window's first departure to its last, an exact link sends all packets but the first; htb
    may send what its bucket holds besides, and a packet that overdraws it.
    """
    spare = 0 if queue.is_exact else largest_bucket_bytes(queue, capacity) + FRAME_BYTES
    if capacity.changes:
        spare += queue.most_at_once * FRAME_BYTES  # what is being sent leaves at the rate before
    carried = capacity.sent_bytes((left_ns - epoch_ns(evidence.trial)) / 1e9)
    excess = np.cumsum(length) - carried  # what left beyond the rate, until each departure
    steps = [count - 1 for count in WINDOW_PACKETS if count <= len(left_ns)]
    most = max((float((excess[step:] - excess[:-step]).max()) for step in steps), default=0.0)
    over = max(0.0, most - spare)
    return make_check(
        "windows", queue.interface, evidence.virtual_time, max(0.0, most), spare, deviation=over
    )


def bucket(evidence: Evidence, queue: QueueRecord, _transit: QueueTransit) -> Iterator[Check]:
    """Check that htb's bucket is small beside the buffer and the path's product of rate and RTT.

    One frame is the least that htb can work with.
    """
    capacity = capacity_of(evidence.trial, queue)
    if queue.is_exact or capacity.trace is not None or polices(queue.discipline):
        return
    largest = largest_bucket_bytes(queue, capacity)
    buffer_bytes = queue.limit * (1 if queue.unit == "bytes" else FRAME_BYTES)
    bdp_bytes = queue.rate_mbit * 125 * evidence.trial.scenario.network.longest_rtt_ms
    least = min(size for size in (buffer_bytes, bdp_bytes) if size)
    share = max(0, largest - FRAME_BYTES) / least
    note = f"{largest} bytes may leave at once" if share else ""
    yield make_check("bucket", queue.interface, evidence.virtual_time, share, 0, note=note)


@dataclass(frozen=True)
class Gaps:
    """Times between departures that should each be one serialisation time.

    The second packet had been waiting since before the first left, and a bucket's credit was
    spent.
    """

    gap_ns: Integers
    bits: Integers  # of the packet that the gap is the time of
    since_ns: Integers  # its departure

    def rate_mbit(self) -> float:
        """Return the rate over all gaps."""
        return float(self.bits.sum() * 1e3 / self.gap_ns.sum())

    def at(self, places: Integers) -> Gaps:
        """Return the gaps at these places."""
        return Gaps(self.gap_ns[places], self.bits[places], self.since_ns[places])

    def without_longest(self, count: int, rate_mbit: npt.NDArray[np.float64]) -> Integers:
        """Return the places of all gaps but the longest ones, beside their serialisation time."""
        order = np.argsort(self.gap_ns * rate_mbit / self.bits, kind="stable")
        return np.sort(order[: max(0, len(order) - count)])

    def share_off(self, rate_mbit: float | npt.NDArray[np.float64], part: float) -> float:
        """Return the share of gaps further off the serialisation time than this part of it."""
        expected = self.bits * 1e3 / rate_mbit
        return float((np.abs(self.gap_ns - expected) > part * expected).mean())


def backlogged(transit: QueueTransit, burst_bytes: int) -> Gaps:
    """Return the gaps of stretches in which the queue never emptied.

    After a pause htb sends packets at once until its bucket is empty: one burst and the packet
    that overdraws it. Gaps count only from then on.
    """
    waited = (transit.arrived_ns[1:] <= transit.left_ns[:-1]) & ~transit.is_guess[1:]
    sent = np.concatenate(([0], np.cumsum(transit.length)))[:-1]  # before each packet
    begin = np.concatenate(([True], ~waited))  # of each stretch
    first = np.maximum.accumulate(np.where(begin, np.arange(len(begin)), 0))
    # by the end of the packet before the gap, excluding the one that may overdraw the bucket
    spent = sent - sent[first] >= burst_bytes
    use = waited & spent[:-1]
    gaps = np.diff(transit.left_ns)[use]
    return Gaps(gaps, transit.length[:-1][use] * 8, transit.left_ns[:-1][use])


def serialised(transit: QueueTransit, *, idle_too: bool) -> Gaps:
    """Return the times that an exact link took to send packets that had been waiting.

    With `idle_too` also those of packets that found it idle, whose arrival is known.
    """
    begun_ns = np.maximum(transit.arrived_ns[1:], transit.left_ns[:-1])
    use = ~transit.is_guess[1:] & (transit.left_ns[1:] > transit.arrived_ns[1:])
    if not idle_too:
        use &= begun_ns == transit.left_ns[:-1]
    gaps, bits = transit.left_ns[1:] - begun_ns, transit.length[1:] * 8
    return Gaps(gaps[use], bits[use], begun_ns[use])


def too_soon(
    left_ns: Integers, length: Integers, rate_mbit: float, burst_bytes: int, part: float
) -> float:
    """Return the share of packets that left earlier than a token bucket of this rate allows.

    `part` of the serialisation time is allowed for. Each packet puts the bucket into debt for its
    serialisation time; the next may leave while the debt does not exceed the burst. `backlogged`
    is stricter, and needs the packets' arrivals.
    """
    if len(left_ns) < 2:
        return 0.0
    takes_ns = length * 8e3 / rate_mbit
    before_ns = np.concatenate(([0.0], np.cumsum(takes_ns)[:-1]))
    paid_ns = np.maximum.accumulate(left_ns - before_ns)[:-1] + before_ns[1:]
    allowed_ns = burst_bytes * 8e3 / rate_mbit + part * takes_ns[:-1]
    return float((paid_ns - left_ns[1:] > allowed_ns).mean())


# Limits


def buffer(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check that the backlog stayed within the limit, and that a FIFO dropped only when full."""
    if polices(queue.discipline):
        return
    in_bytes = queue.unit == "bytes"
    lowest, most = _limits(evidence, queue)
    samples = evidence.samples.queue(queue.interface)
    if samples is None:
        if queue.sampled:
            yield unknown("buffer", queue.interface, NOT_SAMPLED)
    else:
        peak = int(samples["backlog_bytes" if in_bytes else "backlog_packets"].max())
        over = max(0, peak - most)
        yield make_check(
            "buffer", queue.interface, evidence.virtual_time, peak, most, deviation=over
        )
    row = DISCIPLINES.get(queue.discipline)
    if row is None:
        yield unknown("tail drop", queue.interface, NO_ROW)
        return
    # later ones may be in the queue at the end
    transit = transit.lost_before(evidence.judged_ns).surely_lost
    if not row.tail_drop or not len(transit.lost_ns):
        return
    if not transit.complete or evidence.injected.at_queue(queue):
        yield unknown("tail drop", queue.interface, "other losses, or arrivals not captured")
        return
    taken_ns = sending_ns(evidence.trial, queue, transit.left_ns, transit.length)
    packets, sizes = backlog_at_losses(transit, transit.left_ns - taken_ns)
    least = int((sizes if in_bytes else packets).min())
    limit = lowest + 1  # the first that does not fit
    others = _unseen_in_queue(evidence, queue, len(transit.left_ns))
    short = max(0, limit - least - others * (FRAME_BYTES if in_bytes else 1))
    note = f"up to {others} packets of neither TCP nor UDP waited, too" if others else ""
    yield make_check(
        "tail drop",
        queue.interface,
        evidence.virtual_time,
        least,
        limit,
        deviation=short,
        note=note,
    )


def _unseen_in_queue(evidence: Evidence, queue: QueueRecord, seen: int) -> int:
    """Return how many packets that captures leave out, such as a ping's, a full queue may hold.

    It is thrice their share of what passes, and one more.
    """
    others = _other_frames(evidence, queue.interface)
    if not others:
        return 0
    packets = queue.limit // FRAME_BYTES if queue.unit == "bytes" else queue.limit
    return 1 + math.ceil(3 * packets * others / (seen + others))


def _limits(evidence: Evidence, queue: QueueRecord) -> tuple[int, int]:
    """Return the lowest and the highest limit that a queue has while flows run."""
    network = evidence.scenario.network
    place = interfaces(network).get(queue.interface)
    if place is None:  # the record is damaged
        return queue.limit, queue.limit
    number, end = place
    schedule = network.links[number].directions[end].schedule
    limits = [queue.limit, *(each.limit for each in schedule if each.limit is not None)]
    return min(limits), max(limits)


def policed(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check that a policer let packets pass as long as its bucket held what they take.

    What a token bucket lacks is the backlog of a queue that is drained at its rate and holds no
    packet: by that, no packet passes beyond the limit, and none is dropped within it.
    """
    if not polices(queue.discipline):
        return
    name = queue.interface
    transit = transit.surely_lost
    rate_mbit = round(queue.rate_mbit * 1e6) // 8 * 8e-6  # as the kernel keeps it
    slack = math.ceil(BUCKET_SLACK_NS * rate_mbit / 8e3)
    at_passage, at_loss = missing_tokens(transit, rate_mbit)
    most = int(at_passage.max())
    over = 0 if most <= queue.limit + slack else most - queue.limit
    yield make_check("buffer", name, evidence.virtual_time, most, queue.limit, deviation=over)
    if not len(at_loss):
        return
    if not transit.complete or evidence.injected.at_queue(queue):
        yield unknown("tail drop", name, "other losses, or arrivals not captured")
        return
    least, limit = int(at_loss.min()), queue.limit + 1
    short = 0 if least + slack >= limit else limit - least
    yield make_check("tail drop", name, evidence.virtual_time, least, limit, deviation=short)


def missing_tokens(transit: QueueTransit, rate_mbit: float) -> tuple[Integers, Integers]:
    """Return the bytes that a bucket lacks with each packet that passed, and with each lost one."""
    passed_ns = np.where(transit.is_guess, transit.left_ns, transit.arrived_ns)
    order = np.argsort(passed_ns, kind="stable")
    since_ns = int(passed_ns.min())  # as a float, a time of this century has no ns
    arrived_ns, lost_ns = passed_ns[order] - since_ns, transit.lost_ns - since_ns
    takes_ns = transit.length[order] * 8e3 / rate_mbit
    spent_ns = np.cumsum(takes_ns)
    full_ns = np.maximum.accumulate(arrived_ns - (spent_ns - takes_ns)) + spent_ns  # again
    place = np.searchsorted(arrived_ns, lost_ns, side="right") - 1
    wait_ns = np.where(place < 0, 0, np.maximum(full_ns[np.maximum(place, 0)] - lost_ns, 0))
    passed, lost = (full_ns - arrived_ns) * rate_mbit / 8e3, wait_ns * rate_mbit / 8e3
    return np.ceil(passed).astype(np.int64), np.ceil(lost).astype(np.int64) + transit.lost_length


def phase(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Note that a full FIFO dropped packets of regular flows on exact delays: one phase."""
    note = exact_delays(evidence.trial.scenario) if len(transit.lost_ns) else ""
    if note:
        yield make_check("phase", queue.interface, evidence.virtual_time, 0, 1, note=note)


def backlog_at_losses(transit: QueueTransit, begun_ns: Integers) -> tuple[Integers, Integers]:
    """Return the packets and bytes waiting when each lost packet arrived, itself included.

    A packet waits until the link begins to send it.
    """
    arrived = np.sort(transit.arrived_ns)
    by_arrival = np.argsort(transit.arrived_ns, kind="stable")
    sizes_in = np.concatenate(([0], np.cumsum(transit.length[by_arrival])))
    sizes_out = np.concatenate(([0], np.cumsum(transit.length)))
    came = np.searchsorted(arrived, transit.lost_ns, side="right")
    went = np.searchsorted(begun_ns, transit.lost_ns, side="left")
    return came - went + 1, sizes_in[came] - sizes_out[went] + transit.lost_length


# Counters


def conservation(evidence: Evidence, queue: QueueRecord, transit: QueueTransit) -> Iterator[Check]:
    """Check that every packet that entered the queue left it, was dropped or is still inside.

    The queue's count of packets sent must be the capture's.
    """
    name = queue.interface
    end = evidence.samples.queue_end(name)
    leaf = evidence.disciplines.leaves.get(name)
    if end is None and leaf is None:
        yield unknown("conservation", name, NOT_SAMPLED)
        return
    dropped = int(leaf["drops"] if end is None and leaf else end["drops"])  # type: ignore[index]
    inside = 0 if end is None else int(end["backlog_packets"])
    injected = evidence.injected.at_queue(queue)
    left, lost = len(transit.left_ns), len(transit.lost_ns)
    total = left + dropped + inside + injected
    off = abs(transit.entered - total)
    if total > transit.entered:  # what is neither TCP nor UDP is dropped, too, as ICMP's errors
        off = max(0, off - _other_frames_that_stayed(evidence, queue))
    if not transit.complete:
        # packets of the router's own flows that met a full queue are in no capture
        off = max(0, lost - dropped - inside - injected)
    note = f"{left} left, {dropped} dropped, {inside} inside, {injected} lost as asked"
    if transit.complete and transit.unmatched:
        off += transit.unmatched
        note += f", {transit.unmatched} left that never came"
    yield make_check(
        "conservation",
        name,
        evidence.virtual_time,
        transit.entered,
        total,
        deviation=off,
        note=note if off else "",
    )
    if end is not None:
        packets, size = int(end["sent_packets"]), int(end["sent_bytes"])
        yield _sent(evidence, name, transit, packets, size)


def _sent(evidence: Evidence, name: str, transit: QueueTransit, packets: int, size: int) -> Check:
    """Check the queue's count of packets and bytes sent.

    Frames that are neither TCP nor UDP count, but belong to no flow. The captures may lack some
    of what left when they no longer are sure to be complete.
    """
    others = _other_frames(evidence, name)
    left, captured = len(transit.left_ns), int(transit.length.sum())
    off = max(0, abs(packets - left) - others)
    note = f"{size} bytes counted, {captured} captured"
    if off and _came_late(evidence, name, packets - left, size - captured):
        off = 0
    elif not off and not others and size != captured:
        off = 1  # as many packets, but not the same
    return make_check(
        "queue counters",
        name,
        evidence.virtual_time,
        packets,
        left,
        deviation=off,
        note=note if off else "",
    )


def _came_late(evidence: Evidence, name: str, packets: int, size: int) -> bool:
    """Return whether the queue sent these many packets and bytes after captures may have ended."""
    samples = evidence.samples.queue(name)
    if samples is None:
        return False
    sure_s = (evidence.sure_ns - epoch_ns(evidence.trial)) / 1e9
    counts = samples[["sent_packets", "sent_bytes"]]
    until = counts[samples["time_s"] <= sure_s]
    late = counts.iloc[-1] - (until.iloc[-1] if len(until) else 0)
    late_packets, late_size = (int(count) for count in late)
    return 0 < packets <= late_packets and MIN_FRAME_BYTES * packets <= size <= late_size


def _other_frames(evidence: Evidence, *interfaces: str) -> int:
    """Count the frames of interfaces' captures that are neither TCP nor UDP."""
    count = 0
    for capture in evidence.trial.record.captures:
        if capture.interface in interfaces and capture.file:
            packets = evidence.packets.read(evidence.trial.path / capture.file)
            count += packets.frames - len(packets.part)
    return count


def _other_frames_that_stayed(evidence: Evidence, queue: QueueRecord) -> int:
    """Count, of those at a router's other interfaces, how many did not leave by this one."""
    captures = evidence.trial.record.captures
    here = {each.interface for each in captures if each.node == queue.node} - {queue.interface}
    return max(0, _other_frames(evidence, *here) - _other_frames(evidence, queue.interface))


# ECN


def marks(evidence: Evidence, queue: QueueRecord, _transit: QueueTransit) -> Iterator[Check]:
    """Check that the queue's marks are the CEs that leave it."""
    if not queue.sampled:
        return
    name = queue.interface
    if queue.discipline not in DISCIPLINES:
        yield unknown("ECN", name, NO_ROW)
        return
    marking = DISCIPLINES[queue.discipline].marking
    ce = before = 0
    for at_queue in flows_at_queue(evidence.trial, evidence.packets, queue):
        entered = at_queue.entered
        if entered is None and not marking and at_queue.flow.protocol == "udp":
            entered = at_queue.left  # QUIC may send CE to test a path: s2n-quic does
        ce += int((at_queue.left["ecn"] == CE).sum())
        before += 0 if entered is None else int((entered["ecn"] == CE).sum())
    ce -= before
    counted, dropped = _counted_marks(evidence, queue)
    if counted is None:
        yield unknown("ECN", name, NOT_SAMPLED)
        return
    # some disciplines count a packet that another queue has marked before
    off = max(0, ce - counted, counted - dropped - before - ce)
    note = f"up to {dropped} marked packets found the queue full" if ce != counted else ""
    if marking and marking.may_count_twice:
        off = max(0, ce - counted, counted - 2 * ce)
        note = f"{counted - ce} packets were marked by two rules" if ce != counted else ""
    yield make_check("ECN", name, evidence.virtual_time, ce, counted, deviation=off, note=note)


def _counted_marks(evidence: Evidence, queue: QueueRecord) -> tuple[int | None, int]:
    """Return the queue's count of marks, and how many marked packets it may have dropped."""
    end = evidence.samples.queue_end(queue.interface)
    leaf = evidence.disciplines.leaves.get(queue.interface)
    marking = DISCIPLINES[queue.discipline].marking
    if marking and marking.counted_at is None and leaf:
        return sum(tin["ecn_mark"] for tin in leaf.get("tins", [])), 0
    if end is None:
        return None, 0
    return int(end["marks"]), leaf.get("pdrop", 0) if leaf and marking and marking.may_drop else 0


def marks_received(evidence: Evidence) -> Iterator[Check]:
    """Check that the receivers' kernels counted the CEs of their captures, and echoed them."""
    arrived: dict[str, int] = {}
    all_captured = True
    for flow in evidence.flows:
        packets = evidence.packets.part("receiver", flow)
        if packets is None:
            all_captured = False
            continue
        flow_scenario = evidence.trial.scenario.flow(flow.name)
        bleached = flow_scenario.receiver is Misbehaviour.BLEACHED_ECN  # behind the capture
        marked = packets.data[(packets.data["ecn"] == CE) & (not bleached)]
        dst = flow_scenario.dst
        over_ipv4 = ":" not in flow.dst_address  # IPv6's are not in this counter
        arrived[dst] = arrived.get(dst, 0) + (len(marked) if over_ipv4 else 0)
        if flow.protocol == "tcp":
            # DCTCP's SYN and ACKs can be marked too, but echoed are the marks of data alone
            data = marked[marked["payload"] > 0]
            # one that has closed its socket echoes nothing
            in_time = data["time_ns"] <= epoch_ns(evidence.trial) + round(flow.stopped_s * 1e9)
            yield _echo(evidence, flow.name, len(data), packets.acks["flags"], bool(in_time.any()))
    for node, ce in arrived.items():
        counters = read_counters(evidence.trial, node)
        if not counters or not all_captured:
            yield unknown("ECN", node, NOT_SAMPLED if all_captured else NOT_CAPTURED)
        else:
            yield make_check(
                "ECN", node, evidence.virtual_time, counters.get("IpExtInCEPkts", 0), ce
            )


def _echo(
    evidence: Evidence, flow: str, ce: int, flags: npt.NDArray[np.int64], in_time: bool
) -> Check:
    """Check that acknowledgements carry ECE if CE arrived; how many depends on when CWR comes.

    With accurate ECN, that they count marks.
    """
    echoes = int((((flags & ECE) > 0) & ((flags & SYN) == 0)).sum())
    if is_agreed(flags):
        echoes = reported_marks(flags)
    off = int(echoes > 0 and not ce) + int(in_time and not echoes)
    note = f"{ce} packets with CE arrived, {echoes} echoes went back" if off else ""
    return make_check("ECN echo", flow, evidence.virtual_time, echoes, ce, deviation=off, note=note)
