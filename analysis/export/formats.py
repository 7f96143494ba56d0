"""A flow as qlog, as a trace for Perfetto, and as tcptrace's time-sequence graph for xplot.

- qlog: the main schema, draft-ietf-quic-qlog-main-schema, as JSON, version 0.3. Its events are of
  QUIC; a segment is a packet whose number is its sequence number.
- Perfetto reads the Trace Event Format: counters and instants, in microseconds.
- xplot.org reads lines of a shape and its coordinates; the colours are tcptrace's.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from analysis.figures.time_sequence.sequence_data import Sequence, sequence
from analysis.figures.timeline.timeline_data import queue_samples, socket_samples
from analysis.trials.samples import Samples
from analysis.trials.series import Floats
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

MAX_SEGMENT = 1448  # bytes, where a flow's scenario has none


def _counters(trial: Trial, flow: FlowRecord) -> dict[str, tuple[Floats, Floats]]:
    """Return the samples of the flow and its queue: times and values by name."""
    samples = Samples(trial)
    counters: dict[str, tuple[Floats, Floats]] = {}
    sockets = socket_samples(samples, flow)
    if sockets is not None:
        time_s = sockets["time_s"].to_numpy(dtype=float)
        for name, column in (("cwnd (packets)", "cwnd"), ("RTT (ms)", "srtt_ms")):
            counters[name] = (time_s, sockets[column].to_numpy(dtype=float))
    queue, _ = queue_samples(trial, samples, flow)
    if queue is not None:
        for name, column in (("queue (packets)", "packets"), ("drops", "drops")):
            counters[name] = (
                queue["time_s"].to_numpy(dtype=float),
                queue[column].to_numpy(dtype=float),
            )
    return counters


def _events(steps: Sequence) -> Iterator[tuple[float, str, int, int]]:
    """Yield time, kind, first byte and end of what the sender sent and lost."""
    parts = {"sent": steps.new, "lost": steps.lost}
    parts |= {f"sent again: {kind}": each for kind, each in steps.again.items()}
    for kind, each in parts.items():
        for time_s, start, stop in zip(each.time_s, each.start, each.stop, strict=True):
            yield float(time_s), kind, int(start), int(stop)


def as_perfetto(trial: Trial, flow: FlowRecord) -> str:
    """Return the flow for ui.perfetto.dev: counters, and an instant for each loss and repair."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": flow.name}}
    ]
    for name, (time_s, values) in _counters(trial, flow).items():
        events += [
            {"ph": "C", "name": name, "pid": 1, "ts": round(1e6 * at, 3), "args": {"value": value}}
            for at, value in zip(time_s.tolist(), values.tolist(), strict=True)
            if np.isfinite(value)
        ]
    for sent_s, kind, start, stop in _events(sequence(trial, flow)):
        if kind != "sent":
            args = {"bytes": f"{start}–{stop}"}
            instant = {"ph": "i", "s": "p", "pid": 1, "tid": 1, "ts": round(1e6 * sent_s, 3)}
            events.append({**instant, "name": kind, "args": args})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"


def as_qlog(trial: Trial, flow: FlowRecord) -> str:
    """Return the flow as qlog: its metrics, and each segment sent, lost or acknowledged."""
    steps = sequence(trial, flow)
    segment = trial.scenario.flow(flow.name).mss or MAX_SEGMENT
    events: list[tuple[float, str, dict[str, Any]]] = []
    for time_s, kind, start, stop in _events(steps):
        name = "recovery:packet_lost" if kind == "lost" else "transport:packet_sent"
        header = {"packet_type": "1RTT", "packet_number": start}
        data: dict[str, Any] = {"header": header}
        if kind != "lost":
            data["raw"] = {"length": stop - start}
        events.append((time_s, name, data))
    for time_s, ack in zip(steps.ack_s.tolist(), steps.ack.tolist(), strict=True):
        frame = {"frame_type": "ack", "acked_ranges": [[0, max(0, int(ack) - 1)]]}
        header = {"packet_type": "1RTT", "packet_number": int(ack)}
        events.append((time_s, "transport:packet_received", {"header": header, "frames": [frame]}))
    counters = _counters(trial, flow)
    if "cwnd (packets)" in counters:
        time_s_of, windows = counters["cwnd (packets)"]
        rtts = counters["RTT (ms)"][1]
        for time_s, window, rtt in zip(
            time_s_of.tolist(), windows.tolist(), rtts.tolist(), strict=True
        ):
            metrics = {"congestion_window": int(window * segment), "smoothed_rtt": rtt}
            events.append((time_s, "recovery:metrics_updated", metrics))
    events.sort(key=lambda event: event[0])
    listed = [{"time": round(1e3 * at, 6), "name": name, "data": data} for at, name, data in events]
    trace = {
        "title": f"{trial.path.name} {flow.name}",
        "vantage_point": {"name": flow.name, "type": "client"},
        "common_fields": {"time_format": "relative", "reference_time": 0, "protocol_type": ["TCP"]},
        "events": listed,
    }
    document = {"qlog_version": "0.3", "qlog_format": "JSON", "traces": [trace]}
    return json.dumps(document) + "\n"


def as_xplot(trial: Trial, flow: FlowRecord) -> str:
    """Return the flow's time-sequence graph as tcptrace draws it, for xplot.org."""
    steps = sequence(trial, flow)
    lines = [
        *("double double", "title", f"{flow.name} (time sequence graph)"),
        *("xlabel", "time", "ylabel", "sequence offset"),
    ]
    for time_s, kind, start, stop in _events(steps):
        lines.append("white" if kind == "sent" else "orange" if kind == "lost" else "red")
        if kind == "lost":
            lines.append(f"x {time_s:.6f} {start}")
        else:
            lines += [f"line {time_s:.6f} {start} {time_s:.6f} {stop}"]
            lines += [f"darrow {time_s:.6f} {start}", f"uarrow {time_s:.6f} {stop}"]
    lines += _stairs("green", steps.ack_s, steps.ack)
    if steps.window_edge is not None:
        lines += _stairs("yellow", steps.ack_s, steps.window_edge)
    return "\n".join([*lines, "go", ""])


def _stairs(colour: str, time_s: Floats, value: Any) -> Iterator[str]:
    """Yield a line that holds each value until the next."""
    yield colour
    points = list(zip(time_s.tolist(), value.tolist(), strict=True))
    for (begin, low), (end, high) in itertools.pairwise(points):
        yield f"line {begin:.6f} {low} {end:.6f} {low}"
        if high != low:
            yield f"line {end:.6f} {low} {end:.6f} {high}"


# by format: the viewer, its files' suffix, and the function
EXPORTS: Mapping[str, tuple[str, str, Callable[[Trial, FlowRecord], str]]] = {
    "qlog": ("qvis", "qlog", as_qlog),
    "perfetto": ("ui.perfetto.dev", "json", as_perfetto),
    "xplot": ("xplot.org", "xpl", as_xplot),
}
