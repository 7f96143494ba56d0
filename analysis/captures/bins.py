"""A capture's flows over time: one row per flow and bin, of any width."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.captures.flow_table import endpoints
from analysis.captures.plain_table import Array, Column, Labels, Table, constant
from analysis.captures.tcp import Arrays, read_arrays
from testbed.errors import UsageError

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
MAX_ROWS = 4_000_000  # of a capture: more is a slip of the pen, or a capture with absurd times

# of the packets
NEEDED = (
    *("protocol", "stream", "src", "dst", "src_port", "dst_port"),
    *("time_ns", "length", "payload", "marks", "ack_rtt_ms"),
)
COLUMNS = (
    "file",
    "flow",
    "kind",
    "src",
    "dst",
    "start_s",  # of the bin, since the capture's first packet
    "packets",  # from src, of any kind
    "throughput_mbps",  # of their frames
    "wireshark_retransmissions",
    "out_of_order",
    "duplicate_acks",  # from dst
    "rtt_mean_ms",  # of the acknowledgements in the bin
)


def parse_width(text: str) -> float:
    """A bin's width in seconds: `100ms`, `1s`, `0.5`."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(us|ms|s|min)?", text)
    width_s = float(match[1]) * UNITS_S[match[2] or "s"] if match else 0.0
    if width_s <= 0:
        raise UsageError(f"{text!r} is not a bin width", "e.g. 1s, 100ms, 0.5")
    return width_s


@dataclass(frozen=True)
class _Sorted:
    """Each packet's flow and direction, and each flow's first packet from its source."""

    flow: Array  # of each packet, in the order of protocols and streams
    data: Array  # mask: from the side with more payload; of two equals, the one that began
    first: Array  # of each flow, the place of its first such packet


def read_bins(
    path: Path, width_s: float, *, tunnels: bool = False
) -> tuple[Table, tuple[str, ...]]:
    """A capture's flows over time, and what was wrong with the file."""
    arrays = read_arrays(path, NEEDED, tunnels=tunnels)
    return flow_bins(arrays, path.name, width_s), arrays.warnings


def flow_bins(arrays: Arrays, file: str, width_s: float) -> Table:
    """Every flow's bins from its first packet's to its last's, empty ones too."""
    packets = arrays.columns
    width_ns = max(1, round(width_s * 1e9))
    found = _sort(packets)
    bins = (packets["time_ns"] - arrays.start_ns) // width_ns
    low, counts = _spans(found, bins, file, width_s)
    begin = np.cumsum(counts) - counts
    place = begin[found.flow] + bins - low[found.flow]
    total = int(counts.sum())

    def number(which: Array) -> Array:
        return np.bincount(place[which], minlength=total)

    def total_of(which: Array, name: str) -> Array:
        return np.bincount(place[which], weights=packets[name][which], minlength=total)

    timed = ~found.data & ~np.isnan(packets["ack_rtt_ms"])
    with np.errstate(invalid="ignore"):
        rtt_mean_ms = total_of(timed, "ack_rtt_ms") / number(timed)
    flow = np.repeat(np.arange(len(counts)), counts)
    columns: list[Column] = [
        constant(file, total),
        *(column[flow] for column in _names(arrays, found.first)),
        (np.arange(total) - begin[flow] + low[flow]) * (width_ns / 1e9),
        number(found.data),
        total_of(found.data, "length") * 8e3 / width_ns,
        number(found.data & arrays.marked("retransmission")),
        number(found.data & arrays.marked("out_of_order")),
        number(~found.data & arrays.marked("duplicate_ack")),
        rtt_mean_ms,
    ]
    return dict(zip(COLUMNS, columns, strict=True))


def _sort(packets: Mapping[str, Array]) -> _Sorted:
    key = packets["protocol"].astype(np.int64) << 32 | packets["stream"]
    _, first, flow = np.unique(key, return_index=True, return_inverse=True)
    ends = packets["src"].astype(np.int64) << 16 | packets["src_port"]
    began = ends == ends[first][flow]
    there, back = (
        np.bincount(flow[way], packets["payload"][way], len(first)) for way in (began, ~began)
    )
    data = began ^ (back > there)[flow]
    places = np.flatnonzero(data)
    _, firsts = np.unique(flow[data], return_index=True)
    return _Sorted(flow, data, places[firsts])


def _spans(found: _Sorted, bins: Array, file: str, width_s: float) -> tuple[Array, Array]:
    """Each flow's first bin and how many there are."""
    low = np.full(len(found.first), np.iinfo(np.int64).max)
    high = np.full(len(found.first), np.iinfo(np.int64).min)
    np.minimum.at(low, found.flow, bins)
    np.maximum.at(high, found.flow, bins)
    total = float((high.astype(np.float64) - low + 1).sum())
    if total > MAX_ROWS:
        raise UsageError(
            f"{file}: {total:.0f} rows of {width_s:g} s, more than {MAX_ROWS}",
            "take a wider --bin",
        )
    return low, high - low + 1


def _names(arrays: Arrays, first: Array) -> tuple[Column, Column, Column, Column]:
    """Each flow's number, kind and ends, as its first packet has them."""
    of = {name: column[first] for name, column in arrays.columns.items()}
    kind = Labels(of["protocol"], ("tcp", "udp"))
    src, dst = (endpoints(of[end], of[f"{end}_port"], arrays.addresses) for end in ("src", "dst"))
    return of["stream"], kind, src, dst
