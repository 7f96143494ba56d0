"""The kernel's TCP_INFO and counters against what the sender's capture shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.evidence import Evidence
from analysis.trials.samples import read_counters
from analysis.trials.segments import Segments
from analysis.verdict.checks import NOT_CAPTURED, NOT_SAMPLED, OLDER, Check, compare, unknown
from testbed.store import FlowRecord

Integers = npt.NDArray[np.int64]

CLOCK_NS = 1000  # samples' times are written to the microsecond
RETRANSMITTED = "TcpRetransSegs"
LEAST_SAMPLES = 20  # of srtt, to take a median of
LEAST_SENT = 20


def sockets(evidence: Evidence) -> Iterator[Check]:
    """Retransmissions, what is outstanding, the window and the RTT of every TCP flow."""
    for flow in evidence.tcp:
        every = evidence.segments(flow)
        samples = evidence.socket(flow)
        if every is None or samples is None or evidence.has_unknown_queue(flow):
            why = NOT_CAPTURED if every is None else NOT_SAMPLED if samples is None else OLDER
            for name in ("retransmissions", "outstanding", "window", "RTT"):
                yield unknown(name, flow.name, why)
            continue
        yield _retransmissions(evidence, flow, every, samples)
        if len(every) > 1:
            for name in ("outstanding", "window", "RTT"):
                yield unknown(name, flow.name, "samples do not tell its connections apart")
            continue
        yield _outstanding(evidence, flow, every[0], samples)
        yield _window(evidence, flow, every[0], samples)
        yield _rtt(evidence, flow, every[0], samples)


def _bounds(
    count: Callable[[Integers, int], Integers], at_ns: Integers, late_ns: int
) -> tuple[Integers, Integers]:
    """What the capture says around each sample: the least and the most."""
    every = [count(at_ns + off, late) for off in (-CLOCK_NS, CLOCK_NS) for late in (0, late_ns)]
    return np.min(every, axis=0), np.max(every, axis=0)


def _farthest(told: Integers, low: Integers, high: Integers) -> tuple[int, int]:
    """Where a count is furthest from its bounds, and how far."""
    off = np.maximum(0, np.maximum(low - told, told - high))
    worst = int(off.argmax())
    return worst, int(off[worst])


def _retransmissions(
    evidence: Evidence, flow: FlowRecord, every: tuple[Segments, ...], samples: pd.DataFrame
) -> Check:
    """TCP_INFO's total at every sample; a flow's connections are rows of one instant."""
    total = samples.groupby("time_s")["total_retrans"].sum()
    at_ns = evidence.ns(total.index.to_series())
    late_ns = evidence.own_queue_ns(flow)
    bounds = [_bounds(each.retransmissions, at_ns, late_ns) for each in every]
    low, high = (np.sum([bound[i] for bound in bounds], axis=0) for i in (0, 1))
    high = high + evidence.refused_again(evidence.trial.scenario.flow(flow.name).src)
    told = total.to_numpy(dtype=np.int64)
    worst, off = _farthest(told, low, high)
    worst = worst if off else len(told) - 1
    note = f"TCP_INFO at {total.index[worst]:.3f} s against the sender's capture" if off else ""
    measured, expected = int(told[worst]), int(np.clip(told, low, high)[worst])
    return compare(
        "retransmissions",
        flow.name,
        evidence.engine,
        measured,
        expected,
        deviation=off,
        note=note,
    )


def _outstanding(
    evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame
) -> Check:
    at_ns = evidence.ns(samples["time_s"])
    low, high = _bounds(segments.outstanding, at_ns, evidence.own_queue_ns(flow))
    low = low - segments.joined(at_ns + CLOCK_NS)
    high = high + evidence.refused_new(flow)
    told = samples["unacked"].to_numpy(dtype=np.int64)
    worst, off = _farthest(told, low, high)
    note = f"TCP_INFO at {samples['time_s'].iloc[worst]:.3f} s" if off else ""
    return compare(
        "outstanding",
        flow.name,
        evidence.engine,
        int(told[worst]),
        int(np.clip(told, low, high)[worst]),
        deviation=off,
        note=note,
    )


def _window(
    evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame
) -> Check:
    """New data goes out only within cwnd: judged between samples that both know of no loss, with
    nothing sent again between them (a whole recovery fits between samples that are far apart).

    No control adds more to cwnd than is acknowledged. What is outstanding was sent during the
    last round trip, within the cwnd of then: one that has fallen since allows it still.
    """
    at_ns = evidence.ns(samples["time_s"])
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
    # what goes out while no acknowledgement comes in is a timer's, a tail loss probe
    srtt_ns = np.nan_to_num(samples["srtt_ms"].to_numpy())[after] * 1e6
    heard_ns = np.concatenate(([0], segments.ack_ns))
    last_ns = heard_ns[np.searchsorted(segments.ack_ns, segments.new_ns, side="right")]
    known &= segments.new_ns - last_ns <= srtt_ns
    if known.sum() < LEAST_SENT:
        return unknown("window", flow.name, "hardly ever without losses")
    # on a short path the window has many round trips to grow and shrink between two samples
    grown = cwnd[after - 1] + acked_since - acked[after - 1]
    allowed = np.maximum(_lately(at_ns, cwnd, samples["srtt_ms"].to_numpy())[after], grown)
    over = np.where(known, segments.outstanding(segments.new_ns) - allowed, -1)
    worst = int(over.argmax())
    sent, window = int(over[worst] + allowed[worst]), int(allowed[worst])
    return compare(
        "window", flow.name, evidence.engine, sent, window, deviation=max(0, int(over[worst]))
    )


def _lately(at_ns: Integers, cwnd: Integers, srtt_ms: npt.NDArray[np.float64]) -> Integers:
    """The largest cwnd of the round trip before each sample."""
    since_ns = at_ns - np.round(2e6 * np.nan_to_num(srtt_ms)).astype(np.int64)
    places = np.searchsorted(at_ns, since_ns, side="left")
    spans = np.column_stack((places, np.arange(1, len(cwnd) + 1))).ravel()
    padded = np.concatenate((cwnd, cwnd[-1:]))  # a span may end where the samples do
    return np.asarray(np.maximum.reduceat(padded, spans)[::2])


def _rtt(evidence: Evidence, flow: FlowRecord, segments: Segments, samples: pd.DataFrame) -> Check:
    """srtt at samples after a calm while, against the same average of the capture's."""
    time_ns, smooth_ms, calm = segments.smoothed_rtt()
    at_ns, srtt_ms = evidence.ns(samples["time_s"]), samples["srtt_ms"].to_numpy()
    place = np.searchsorted(time_ns, at_ns, side="right") - 1
    use = (place >= 0) & (srtt_ms > 0)
    use[use] = calm[place[use]]
    if use.sum() < LEAST_SAMPLES:
        return unknown("RTT", flow.name, "hardly ever a while without losses")
    told, seen = srtt_ms[use], smooth_ms[place[use]]
    off = float(np.median(np.abs(told - seen)))
    off = max(0.0, off - evidence.own_queue_ns(flow) / 1e6)
    return compare(
        "RTT",
        flow.name,
        evidence.engine,
        float(np.median(told)),
        float(np.median(seen)),
        deviation=off,
    )


def hosts(evidence: Evidence) -> Iterator[Check]:
    """What a sending host's kernel counted as sent again, over the whole trial."""
    senders = dict.fromkeys(evidence.trial.scenario.flow(f.name).src for f in evidence.tcp)
    for node in senders:
        counters = read_counters(evidence.trial, node)
        flows = [f for f in evidence.tcp if evidence.trial.scenario.flow(f.name).src == node]
        known = [evidence.segments(flow) for flow in flows]
        if RETRANSMITTED not in counters or None in known:
            why = NOT_CAPTURED if RETRANSMITTED in counters else NOT_SAMPLED
            yield unknown("retransmissions", node, why)
            continue
        every = [each for found in known if found for each in found]
        counted, refused = counters[RETRANSMITTED], evidence.refused_again(node)
        # the captures go on for a second after that
        least = sum(int(each.retransmissions(evidence.counted_ns)[0]) for each in every)
        most = sum(int(each.again.sum()) for each in every)
        seen = min(max(counted - refused, least), most)
        note = f"{refused} of them refused by the host's own queue" if refused else ""
        yield compare("retransmissions", node, evidence.engine, counted, seen + refused, note=note)
