"""A connection's segments and acknowledgements as the page plots them, each with what Wireshark
says of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.figures.plotting import style
from analysis.figures.time_sequence.sequence_data import Sequence, sequence
from analysis.figures.timeline.event_markers import MARKERS
from analysis.figures.timeline.timeline_events import Kind, classes, seconds
from analysis.report.plot_data import Json
from analysis.report.trial_plot import Part, mark, packed
from analysis.trials.packets import TrialPackets, ports_of
from analysis.trials.tcp_stream import unwrap
from testbed.store import FlowRecord, Trial

KILO = 1e3
BYTE = 1e-3  # of a kilobyte
HEIGHT = 360  # pixels
# The words in front of the Info column (packet-tcp.c)
SAID: Mapping[Kind, str] = {
    Kind.RETRANSMISSION: "[TCP Retransmission]",
    Kind.FAST: "[TCP Fast Retransmission]",
    Kind.SPURIOUS: "[TCP Spurious Retransmission]",
    Kind.OUT_OF_ORDER: "[TCP Out-Of-Order]",
}


def segments(trial: Trial, flow: FlowRecord) -> Part | None:
    """The time-sequence panel of the flow's first connection, at its sender; None without a
    capture there, and for a workload."""
    own = TrialPackets(trial).flow("sender", flow)
    if flow.protocol != "tcp" or flow.has_many_connections or own is None:
        return None
    every = ports_of(own, flow)
    port, other = every[0] if every else (0, 0)
    data = own.data[(own.data["src_port"] == port) & (own.data["dst_port"] == other)]
    data = data[data["payload"] > 0]
    acks = own.acks[(own.acks["dst_port"] == port) & (own.acks["src_port"] == other)]
    acks = acks[(acks["flags"] & 0x10 > 0)]
    if data.empty or acks.empty:
        return None
    found = sequence(trial, flow)
    marks = [*_around(found), _acks(trial, acks), *_sent(trial, data)]
    if len(found.lost):
        lost = found.lost
        look = {"marker": "x", "size": 6, "width": 1.0, "mute": True}
        marks.append(
            mark("points", "lost", style.BLACK, lost.time_s, lost.stop / KILO, BYTE, **look)
        )
    top = float(max(found.new.stop.max(initial=1), found.ack.max(initial=1))) / KILO
    return Part(HEIGHT, "sequence number\n(kB)", (0, top), tuple(marks), fits=True)


def _around(found: Sequence) -> list[Json]:
    """The receiver's window and the SACK blocks."""
    marks = []
    if found.window_edge is not None:
        look = {"aside": True, "mute": True, "dash": (4, 1.5, 1, 1.5), "width": 0.9}
        edge = found.window_edge / KILO
        name = "receiver's window"
        marks.append(mark("steps", name, style.BROWN, found.ack_s, edge, BYTE, **look))
    if len(found.sacks):
        sacks = found.sacks
        look = {"y2": packed(sacks.stop / KILO, BYTE), "width": 1.1, "mute": True}
        start = sacks.start / KILO
        marks.append(mark("bars", "SACK block", style.PURPLE, sacks.time_s, start, BYTE, **look))
    return marks


def _acks(trial: Trial, acks: pd.DataFrame) -> Json:
    said = {
        place: f"[TCP Dup ACK {of}#{number}]"
        for place, (of, number, repeats) in enumerate(
            zip(
                acks["duplicate_ack_frame"],
                acks["duplicate_ack_number"],
                acks["duplicate_ack"],
                strict=True,
            )
        )
        if repeats
    }
    ack = unwrap(acks["relative_ack"].to_numpy(dtype=np.int64))
    packets = _packets(acks, said)
    look = {"packets": packets, "width": 0.9}
    return mark("steps", "ACK", style.GREEN, seconds(acks, trial), ack / KILO, BYTE, **look)


def _sent(trial: Trial, data: pd.DataFrame) -> list[Json]:
    start = unwrap(data["relative_seq"].to_numpy(dtype=np.int64))
    rows = data.assign(start=start, time_s=seconds(data, trial))
    kinds = classes(rows)
    new = ~np.logical_or.reduce([chosen.to_numpy() for chosen in kinds.values()])
    marks = [_bars("segment", style.BLACK, rows[new], "", 0.9)]
    for kind, chosen in kinds.items():
        if chosen.any():
            colour = MARKERS[kind]["color"]
            marks.append(_bars(str(kind), colour, rows[chosen], SAID[kind], 1.8))
    return marks


def _bars(name: str, colour: str, rows: pd.DataFrame, said: str, width: float) -> Json:
    start, stop = rows["start"] / KILO, (rows["start"] + rows["payload"]) / KILO
    labels = dict.fromkeys(range(len(rows)), said) if said else {}
    more = {"y2": packed(stop, BYTE), "packets": _packets(rows, labels), "width": width}
    return mark("bars", name, colour, rows["time_s"], start, BYTE, **more)


def _packets(rows: pd.DataFrame, said: Mapping[int, str]) -> Json:
    """What Wireshark's columns have of these packets."""
    columns = ("frame", "length", "payload", "flags", "relative_seq", "relative_ack", "window")
    found: Json = {name: packed(rows[name], 1) for name in columns}
    ports = rows.iloc[:1]
    ends = [int(ports[name].iloc[0]) for name in ("src_port", "dst_port")] if len(rows) else [0, 0]
    return {**found, "said": {str(place): words for place, words in said.items()}, "ports": ends}
