"""Checks of the kernel's TCP_INFO and counters against the capture; what limited the sender."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import FIN, SYN, UNKNOWN_SCALE
from analysis.trials.limits import sender_limits
from analysis.trials.packets import Interval, capture_ns, epoch_ns, measured_interval
from analysis.trials.samples import read_counters, read_iperf3
from analysis.trials.tcp_stream import Segments, pruned
from analysis.verdict.checks import NOT_CAPTURED, NOT_SAMPLED, Check, make_check, unknown
from analysis.verdict.evidence import Evidence
from analysis.verdict.iperf3 import is_iperf3
from analysis.verdict.sender_queue import (
    own_queue_ns,
    refused_again,
    refused_new,
    refused_syns,
)
from testbed.scenario.model import Misbehaviour
from testbed.store.names import RETIRE_S
from testbed.store.records import FlowRecord

Integers = npt.NDArray[np.int64]

SAMPLE_CLOCK_NS = 1000  # the times of samples are written to the microsecond
RETIRE_NS = round(RETIRE_S * 1e9)
RETRANSMITTED_COUNTER = "TcpRetransSegs"
MIN_SAMPLES = 20  # of srtt, to take a median of
PROBE_RTT_CWND = 4  # bbr_cwnd_min_target
PROBE_RTT_NS = 500_000_000  # bbr_probe_rtt_mode_ms is 200, and a round trip
MIN_SEGMENTS = 20


def sockets(evidence: Evidence) -> Iterator[Check]:
    """Check retransmissions, segments outstanding, the window and the RTT of TCP flows."""
    for flow in evidence.tcp:
        connections = evidence.packets.connections(flow)
        samples = evidence.samples.flow(flow)
        if evidence.trial.scenario.flow(flow.name).command is not None:
            samples = None  # of those of its connections that were open
        if connections is None or samples is None:
            why = NOT_CAPTURED if connections is None else NOT_SAMPLED
            for name in ("retransmissions", "outstanding", "window", "RTT"):
                yield unknown(name, flow.name, why)
            continue
        yield _retransmissions(evidence, flow, connections, samples)
        if len(connections) > 1:
            for name in ("outstanding", "window", "RTT"):
                yield unknown(name, flow.name, "samples do not tell its connections apart")
            continue
        yield _outstanding(evidence, flow, connections[0], samples)
        yield check_window(evidence, flow, connections[0], samples)
        yield _rtt(evidence, flow, connections[0], samples)


def outstanding_bounds(
    segments: Segments, at_ns: Integers, late_ns: int
) -> tuple[Integers, Integers]:
    """Return the fewest and the most segments that can be outstanding at each sample.

    In the instant of an acknowledgement, a sample may be taken after it and before what it lets
    leave: at the end of a handshake nothing is outstanding.
    """
    low = segments.outstanding(at_ns + SAMPLE_CLOCK_NS, -2 * SAMPLE_CLOCK_NS)
    # within the sample's microseconds a fast link sends and acknowledges many
    times_ns = np.sort(np.concatenate((segments.new_ns - late_ns, segments.ack_ns, at_ns)))
    bounds = segments.outstanding(times_ns, late_ns)
    first = np.searchsorted(times_ns, at_ns - SAMPLE_CLOCK_NS, side="left")
    behind = np.searchsorted(times_ns, at_ns + SAMPLE_CLOCK_NS, side="right")
    return low, _most_of_spans(bounds, np.maximum(first - 1, 0), behind)


def _most_of_spans(values: Integers, first: Integers, behind: Integers) -> Integers:
    """Return the largest of the values from each first place to the one before its end."""
    spans = np.column_stack((first, behind)).ravel()
    padded = np.concatenate((values, values[-1:]))  # a span may end where the values do
    return np.asarray(np.maximum.reduceat(padded, spans)[::2])


def _repeated_bounds(
    segments: Segments, at_ns: Integers, late_ns: int
) -> tuple[Integers, Integers]:
    """Return the fewest and the most retransmissions that can have left by each sample."""
    low = segments.retransmissions(at_ns - SAMPLE_CLOCK_NS)
    return low, segments.retransmissions(at_ns + SAMPLE_CLOCK_NS, late_ns)


def _furthest(sampled: Integers, low: Integers, high: Integers) -> tuple[int, int]:
    """Return the sample at which a count is furthest outside its bounds, and by how much."""
    off = np.maximum(0, np.maximum(low - sampled, sampled - high))
    worst = int(off.argmax())
    return worst, int(off[worst])


def _retransmissions(
    evidence: Evidence, flow: FlowRecord, connections: tuple[Segments, ...], samples: pd.DataFrame
) -> Check:
    """Check TCP_INFO's total at every sample, over all connections of the flow."""
    total = samples.groupby("time_s")["total_retrans"].sum()
    at_ns = capture_ns(evidence.trial, total.index.to_series())
    late_ns = own_queue_ns(evidence, flow)
    bounds = [_repeated_bounds(each, at_ns, late_ns) for each in connections]
    low, high = (np.sum([bound[i] for bound in bounds], axis=0) for i in (0, 1))
    high = high + refused_again(evidence, evidence.trial.scenario.flow(flow.name).src)[1]
    high = high + refused_syns(evidence, flow)
    sampled = total.to_numpy(dtype=np.int64)
    worst, off = _furthest(sampled, low, high)
    worst = worst if off else len(sampled) - 1
    note = f"TCP_INFO at {total.index[worst]:.3f} s against the sender's capture" if off else ""
    measured, expected = int(sampled[worst]), int(np.clip(sampled, low, high)[worst])
    return make_check(
        "retransmissions",
        flow.name,
        evidence.virtual_time,
        measured,
        expected,
        deviation=off,
        note=note,
    )


def _outstanding(
    evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame
) -> Check:
    """Check TCP_INFO's segments outstanding at every sample."""
    at_ns = capture_ns(evidence.trial, samples["time_s"])
    low, high = outstanding_bounds(segments, at_ns, own_queue_ns(evidence, flow))
    low = low - segments.joined(at_ns + SAMPLE_CLOCK_NS)
    high = high + refused_new(evidence, flow)
    if evidence.trial.scenario.flow(flow.name).receiver is Misbehaviour.ACK_DIVISION:
        high = high + 1  # of several segments in one buffer, what is left counts from its middle on
    sampled = samples["unacked"].to_numpy(dtype=np.int64)
    worst, off = _furthest(sampled, low, high)
    note = f"TCP_INFO at {samples['time_s'].iloc[worst]:.3f} s" if off else ""
    return make_check(
        "outstanding",
        flow.name,
        evidence.virtual_time,
        int(sampled[worst]),
        int(np.clip(sampled, low, high)[worst]),
        deviation=off,
        note=note,
    )


def check_window(
    evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame
) -> Check:
    """Check that new data leaves only within cwnd.

    Judged are segments between samples that both know of no loss, with no retransmission between
    them (a complete recovery fits between samples that are far apart).

    No control adds more to cwnd than is acknowledged, but BBR, which after PROBE_RTT has the cwnd
    again that it had before. The segments outstanding were sent during the last round trip, within
    the cwnd of that time, even if cwnd has fallen since.
    """
    at_ns = capture_ns(evidence.trial, samples["time_s"])
    if len(at_ns) < 2:
        return unknown("window", flow.name, NOT_SAMPLED)
    calm = (samples["ca_state"] == "open").to_numpy()
    cwnd = samples["cwnd"].to_numpy(dtype=np.int64)
    again = segments.retransmissions(at_ns)
    acked = np.searchsorted(segments.new_end, segments.edges(at_ns), side="right")
    acked_since = np.searchsorted(segments.new_end, segments.edges(segments.new_ns), side="right")
    after = np.searchsorted(at_ns, segments.new_ns, side="left")
    known = (after > 0) & (after < len(at_ns))
    after = np.clip(after, 1, len(at_ns) - 1)
    known &= calm[after] & calm[after - 1] & (segments.new_ns < at_ns[-1])
    known &= again[after] == again[after - 1]
    # a segment that leaves while no acknowledgement arrives is a timer's, a tail loss probe
    srtt_ns = np.nan_to_num(samples["srtt_ms"].to_numpy())[after] * 1e6
    heard_ns = np.concatenate(([0], segments.ack_ns))
    last_ns = heard_ns[np.searchsorted(segments.ack_ns, segments.new_ns, side="right")]
    known &= segments.new_ns - last_ns <= srtt_ns
    if known.sum() < MIN_SEGMENTS:
        return unknown("window", flow.name, "hardly ever without losses")
    # on a short path the window can grow and shrink for many round trips between two samples
    grown = cwnd[after - 1] + acked_since - acked[after - 1]
    allowed = np.maximum(_recent_cwnd(at_ns, cwnd, samples["srtt_ms"].to_numpy())[after], grown)
    before_ns = np.searchsorted(at_ns, at_ns - PROBE_RTT_NS, side="left")
    restored = _most_of_spans(cwnd, before_ns, np.arange(1, len(cwnd) + 1))[after - 1]
    probed = cwnd[after - 1] <= PROBE_RTT_CWND
    allowed = np.where(probed, np.maximum(allowed, restored), allowed)
    over = np.where(known, segments.outstanding(segments.new_ns) - allowed, -1)
    worst = int(over.argmax())
    sent, window = int(over[worst] + allowed[worst]), int(allowed[worst])
    return make_check(
        "window", flow.name, evidence.virtual_time, sent, window, deviation=max(0, int(over[worst]))
    )


def _recent_cwnd(at_ns: Integers, cwnd: Integers, srtt_ms: npt.NDArray[np.float64]) -> Integers:
    """Return the largest cwnd of the round trip before each sample."""
    since_ns = at_ns - np.round(2e6 * np.nan_to_num(srtt_ms)).astype(np.int64)
    places = np.searchsorted(at_ns, since_ns, side="left")
    return _most_of_spans(cwnd, places, np.arange(1, len(cwnd) + 1))


def _rtt(evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame) -> Check:
    """Check srtt after a while without losses, against the same average of the capture."""
    time_ns, smooth_ms, calm = segments.smoothed_rtt()
    at_ns, srtt_ms = capture_ns(evidence.trial, samples["time_s"]), samples["srtt_ms"].to_numpy()
    place = np.searchsorted(time_ns, at_ns, side="right") - 1
    use = (place >= 0) & (srtt_ms > 0)
    use[use] = calm[place[use]]
    if use.sum() < MIN_SAMPLES:
        return unknown("RTT", flow.name, "hardly ever a while without losses")
    sampled, captured = srtt_ms[use], smooth_ms[place[use]]
    off = float(np.median(np.abs(sampled - captured)))
    off = max(0.0, off - own_queue_ns(evidence, flow) / 1e6)
    return make_check(
        "RTT",
        flow.name,
        evidence.virtual_time,
        float(np.median(sampled)),
        float(np.median(captured)),
        deviation=off,
    )


def hosts(evidence: Evidence) -> Iterator[Check]:
    """Check the retransmissions that each sending host's kernel counted in the trial."""
    senders = dict.fromkeys(evidence.trial.scenario.flow(f.name).src for f in evidence.tcp)
    for node in senders:
        counters = read_counters(evidence.trial, node)
        flows = [f for f in evidence.tcp if evidence.trial.scenario.flow(f.name).src == node]
        known = [evidence.packets.connections(flow) for flow in flows]
        if RETRANSMITTED_COUNTER not in counters or None in known:
            why = NOT_CAPTURED if RETRANSMITTED_COUNTER in counters else NOT_SAMPLED
            yield unknown("retransmissions", node, why)
            continue
        connections = [segments for flow in known if flow for segments in flow]
        counted, (least_refused, most_refused) = (
            counters[RETRANSMITTED_COUNTER],
            refused_again(evidence, node),
        )
        # the captures continue for a second after the counters were read
        least = sum(
            int(segments.retransmissions(_read_ns(evidence))[0]) for segments in connections
        )
        most = sum(int(segments.again.sum()) for segments in connections)
        most += sum(refused_syns(evidence, flow) for flow in flows)
        most += sum(_unanswered_end(evidence, flow) for flow in flows)
        most += sum(
            _sent_again_by_receiver(evidence, flow)
            for flow in evidence.tcp
            if evidence.trial.scenario.flow(flow.name).dst == node
        )
        captured = min(max(counted - least_refused, least), most)
        refused = min(max(counted - captured, least_refused), most_refused)
        note = f"{refused} of them refused by the host's own queue" if refused else ""
        yield make_check(
            "retransmissions", node, evidence.virtual_time, counted, captured + refused, note=note
        )


def receivers(evidence: Evidence) -> Iterator[Check]:
    """Check that each receiving host had room for what arrived, by its kernel's count."""
    trial = evidence.trial
    for node in dict.fromkeys(trial.scenario.flow(flow.name).dst for flow in evidence.tcp):
        if read_counters(trial, node):
            yield make_check("receive buffer", node, evidence.virtual_time, pruned(trial, node), 0)
        else:
            yield unknown("receive buffer", node, NOT_SAMPLED)


def offered_windows(evidence: Evidence) -> Iterator[Check]:
    """Check that no receiver offers a wider window than the scenario sets.

    The window is told in units of its scale, and rounded up to them.
    """
    for flow in evidence.tcp:
        allowed = evidence.trial.scenario.flow(flow.name).window_bytes
        if allowed is None:
            continue
        packets = evidence.packets.part("receiver", flow) or evidence.packets.part("sender", flow)
        if packets is None:
            yield unknown("window offered", flow.name, NOT_CAPTURED)
            continue
        acks = packets.acks
        known = ((acks["flags"] & SYN) == 0) & (acks["window_scale"] != UNKNOWN_SCALE)
        if not known.any():
            yield unknown("window offered", flow.name, "the window's scale was not captured")
            continue
        window, scale = (acks[name][known].astype(np.int64) for name in ("window", "window_scale"))
        unit = max(1, int(scale.max(initial=1)))
        widest, limit = int(window.max(initial=0)), -(-allowed // unit) * unit
        over = max(0, widest - limit)
        yield make_check(
            "window offered", flow.name, evidence.virtual_time, widest, limit, deviation=over
        )


def _sent_again_by_receiver(evidence: Evidence, flow: FlowRecord) -> int:
    """Return how many beginnings, requests and ends a flow's receiver sent again."""
    packets = evidence.packets.part("receiver", flow)
    if packets is None:
        return 0
    acks = packets.acks
    sent = acks[(acks["payload"] > 0) | ((acks["flags"] & (SYN | FIN)) > 0)]
    names = np.column_stack([sent[name] for name in ("src_port", "dst_port", "seq")])
    return len(sent) - len(np.unique(names, axis=0))


def _unanswered_end(evidence: Evidence, flow: FlowRecord) -> int:
    """Return 1 where iperf3's server did not begin: one retransmission that is not captured.

    While the server waits for the flow's connection it reads nothing, so the end of the control
    connection is acknowledged late, and sent again. That connection has its own network.
    """
    if not is_iperf3(evidence, flow):
        return 0
    report = read_iperf3(evidence.trial, flow, "server")
    return int(not (report and report.get("intervals")))


def _read_ns(evidence: Evidence) -> Integers:
    """Return the time at which the hosts' counters were read, on the captures' clock."""
    return np.array([epoch_ns(evidence.trial) + round(evidence.samples.last_s() * 1e9) - RETIRE_NS])


WINDOW_WAS_SET = "the scenario sets this window"


def what_limited(evidence: Evidence) -> Iterator[Check]:
    """Check that neither the receiver's window nor the send buffer limited TCP flows for long."""
    for flow in evidence.tcp:
        interval = measured_interval(evidence.trial, flow)
        of_program = evidence.trial.scenario.flow(flow.name).command is not None
        samples = None if of_program else evidence.samples.flow(flow)
        limits = sender_limits(evidence.trial, samples, interval)
        if limits is None:
            share = _captured_window(evidence, flow, interval)
            if share is None:
                yield unknown("receive window", flow.name, NOT_SAMPLED)
            else:
                yield _receive_window(evidence, flow, share)
            yield unknown("send buffer", flow.name, NOT_SAMPLED)
            continue
        yield _receive_window(evidence, flow, limits.receive_window)
        yield make_check("send buffer", flow.name, evidence.virtual_time, limits.send_buffer, 0)


def _captured_window(evidence: Evidence, flow: FlowRecord, interval: Interval) -> float | None:
    """Return how long the receiver's window limited a flow, by the windows in its capture.

    The sockets of programs are not sampled: their connections come and go.
    """
    connections = evidence.packets.connections(flow) or ()
    windows = [each.held_by_window_ns(interval.start_ns, interval.stop_ns) for each in connections]
    known = [each for each in windows if each is not None]
    total_ns = sum(lasted_ns for _, lasted_ns in known)
    if len(known) < len(windows) or not total_ns:
        return None
    return sum(held_ns for held_ns, _ in known) / total_ns


def _receive_window(evidence: Evidence, flow: FlowRecord, share: float) -> Check:
    """Check how long the receiver's window limited a flow; one that the scenario sets may."""
    virtual = evidence.virtual_time
    if evidence.trial.scenario.flow(flow.name).window_bytes is None:
        return make_check("receive window", flow.name, virtual, share, 0)
    note = WINDOW_WAS_SET if share else ""
    return make_check("receive window", flow.name, virtual, share, 0, deviation=0, note=note)
