"""A capture's flows as a table: a row for each TCP connection or UDP exchange, in all or by bins.

The sums over whole flows are made by the core while the capture is read, so that memory does not
grow with it; those by bins are made from the columns of all packets.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.captures.native import Core, FlowSums
from analysis.captures.pcap import feed
from analysis.captures.skipped_frames import skipped_frames
from analysis.captures.tcp import TIMED, Array, Arrays, read_arrays
from testbed.errors import UsageError


@dataclass(frozen=True)
class Metric:
    """A column: its unit, its definition, and whether it is a count (written as an integer).

    `heading` is its short name in tables for people. One that `reads_options` of TCP needs whole
    headers.
    """

    name: str
    unit: str
    definition: str
    count: bool = False
    heading: str = ""
    reads_options: bool = False

    def at(self, place: str) -> Metric:
        """Return the metric with a definition that says where it is measured."""
        return dataclasses.replace(self, definition=f"{self.definition}, {place}")


def _marked(name: str, mark: str, heading: str, but: str = "") -> Metric:
    definition = f"packets with Wireshark's tcp.analysis.{mark}{but}"
    return Metric(name, "packets", definition, True, heading, reads_options=True)


# What is measured of a flow at one capture. `analysis/metrics` says which captures of a trial.
FLOW_METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("sent_packets", "packets", "packets with data", True, "packets"),
        Metric(
            "throughput_mbps",
            "Mbit/s",
            "bits of the Ethernet frames (without preamble and checksum) in the data's direction, "
            "over the interval",
            heading="Mbit/s",
        ),
        Metric(
            "goodput_mbps",
            "Mbit/s",
            "bytes delivered in order, each counted once (TCP: the advance of the contiguous "
            "sequence numbers; UDP: the payload received), over the interval",
            heading="goodput",
        ),
        _marked("wireshark_retransmissions", "retransmission", "retr."),
        _marked("wireshark_fast_retransmissions", "fast_retransmission", "fast"),
        _marked("wireshark_spurious_retransmissions", "spurious_retransmission", "spurious"),
        _marked("out_of_order", "out_of_order", "out of order"),
        _marked(
            "duplicate_acks",
            "duplicate_ack",
            "dup. ACKs",
            " (one that moves the window is an update of it, RFC 5681, section 2: with small "
            "segments and a window that grows, most that repeat a number are)",
        ),
        Metric(
            "rtt_min_ms",
            "ms",
            "smallest round-trip time of data: from the sending of a segment to the "
            "acknowledgement that ends with it, unless that covers bytes that were sent twice "
            "(Karn's rule: RFC 6298, section 3)",
            heading="RTT min",
            reads_options=True,
        ),
        *(
            Metric(name, "ms", f"{what} of the round-trip times", heading=head, reads_options=True)
            for name, what, head in (
                ("rtt_mean_ms", "mean", "mean"),
                ("rtt_p95_ms", "95th percentile", "95 % ms"),
            )
        ),
        Metric(
            "wireshark_ack_rtt_mean_ms",
            "ms",
            "mean of Wireshark's tcp.analysis.ack_rtt of acknowledgements of data: where one "
            "covers a repaired loss, it includes the time that the repair took",
            heading="ack_rtt",
            reads_options=True,
        ),
    )
}
# The core's 95th percentile is exact up to 16384 round trips, beyond that to a part in 1024.
# The interval of a rate is the flow's duration. Columns of TCP alone are unknown for UDP.
FLOW_COLUMNS = (
    Metric("file", "", "the capture", heading="file"),
    Metric("flow", "", "Wireshark's number: the filter `tcp.stream == N` shows it", heading="flow"),
    Metric("kind", "", "tcp or udp", heading="kind"),
    Metric("src", "", "the side that sends more payload; of two equals, the first", heading="src"),
    Metric("dst", "", "the other side", heading="dst"),
    Metric("start_s", "s", "first packet, since the capture's first", heading="start s"),
    Metric("duration_s", "s", "from the first to the last packet", heading="length s"),
    *FLOW_METRICS.values(),
    Metric("unread", "", "frames of the capture that were not read", heading="frames not read"),
)
HEADINGS: Mapping[str, str] = {column.name: column.heading for column in FLOW_COLUMNS}
FLAGS = ("retransmissions", "fast_retransmissions", "spurious_retransmissions", "out_of_order")
RTTS = ("rtt_low_ms", "rtt_mean_ms", "rtt_p95_ms", "ack_rtt_mean_ms")
TCP = 0  # enum protocol of core.h
PROTOCOL_KINDS = ("tcp", "udp")

BIN_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
MAX_BINS = 4_000_000  # of a capture: more is a slip of the pen, or a capture with absurd times
BIN_NEEDS = (  # columns of the packets
    *("protocol", "stream", "src", "dst", "src_port", "dst_port"),
    *("time_ns", "length", "payload", "marks", "ack_rtt_ms", TIMED),
)


@dataclass(frozen=True)
class CaptureTable:
    """A table made of a capture, and what was wrong with the file."""

    table: pa.Table
    warnings: tuple[str, ...]


def numbers(values: Array) -> pa.Array:
    """Return an array as a column.

    Without pa.array(), which loads pandas: that takes longer than to read a small capture.
    """
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def table_of(columns: Mapping[str, Array | pa.Array]) -> pa.Table:
    """Return columns, some of which are plain arrays, as a table."""
    made = {
        name: numbers(column) if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }
    return pa.table(made)


def labels(codes: Array, names: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of texts that repeat: each row has a place among the names."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    texts = pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )
    return pa.DictionaryArray.from_arrays(numbers(codes.astype(np.int32)), texts)


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """Return a column with the same text in all rows."""
    return labels(np.zeros(rows, np.int32), (text,))


def endpoints(address: Array, port: Array, addresses: Sequence[str]) -> pa.DictionaryArray:
    """Return addresses and ports as people write them; `address` is a place in `addresses`."""
    keys, codes = np.unique(address.astype(np.int64) << 16 | port, return_inverse=True)
    return labels(codes, [endpoint(addresses[k >> 16], k & 0xFFFF) for k in keys.tolist()])


def endpoint(address: str, port: int | str) -> str:
    """Return an address and a port as people write them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def read_flows(path: Path, *, tunnels: bool = False) -> CaptureTable:
    """Read a capture once and return its flows in the order of their first packets.

    `tunnels`: with those in VXLAN and GENEVE.
    """
    with closing(Core(with_flows=True, tunnels=tunnels)) as core:
        warnings = feed(path, core, lambda: None)
        flows = np.frombuffer(memoryview(core.flows()), np.dtype(FlowSums))
        columns = _flow_columns(flows, core.addresses(), core.state.start_ns)
        count = len(flows)
        unread = constant(str(skipped_frames(core)), count)
        columns = [constant(path.name, count), *columns, unread]
        return CaptureTable(table_of(dict(zip(HEADINGS, columns, strict=True))), warnings)


def _flow_columns(flows: Array, addresses: list[str], start_ns: int) -> list[Array | pa.Array]:
    order = np.argsort(flows["first_ns"], kind="stable")
    src = _senders(flows)[order]

    def of(name: str, side: Array) -> Array:
        column: Array = flows["sides"][name][order, side]
        return column

    tcp = flows["protocol"][order] == TCP
    first_ns = flows["first_ns"][order]
    duration_s = _seconds(flows["last_ns"][order], first_ns)
    delivered = np.where(tcp, of("delivered", src), of("payload", src).astype(np.int64))
    ends = [endpoints(of("address", side), of("port", side), addresses) for side in (src, 1 - src)]
    return [
        flows["stream"][order],
        labels(~tcp, PROTOCOL_KINDS),
        *ends,
        _seconds(first_ns, np.int64(start_ns)),
        duration_s,
        of("data_packets", src).astype(np.int64),
        _rate_mbps(of("bytes", src), duration_s),
        _rate_mbps(delivered, duration_s),
        *(np.where(tcp, of(name, src), np.nan) for name in FLAGS),
        np.where(tcp, of("duplicate_acks", 1 - src), np.nan),
        *(of(name, src) for name in RTTS),
    ]


def _senders(flows: Array) -> Array:
    """Return the side with more payload; of two equals, the one that began."""
    began = flows["began"].astype(np.int64)
    rows, payload = np.arange(len(flows)), flows["sides"]["payload"]
    return np.where(payload[rows, began] >= payload[rows, 1 - began], began, 1 - began)


def _seconds(later: Array, earlier: Array | np.int64) -> Array:
    """Return the distance of two times, which may be more than 64 bits hold with a sign."""
    forward = later >= earlier
    with np.errstate(over="ignore"):
        gap = np.where(forward, later - earlier, earlier - later).view(np.uint64) / 1e9
    return np.where(forward, gap, -gap)


def _rate_mbps(size_bytes: Array, duration_s: Array) -> Array:
    """Return NaN for a flow of no length, and for a number of bytes that is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = size_bytes * 8e-6 / duration_s
    return np.where((duration_s > 0) & (size_bytes >= 0), rate, np.nan)


def parse_width(text: str) -> float:
    """Read a bin's width in seconds: `100ms`, `1s`, `0.5`."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(us|ms|s|min)?", text)
    width_s = float(match[1]) * BIN_UNITS_S[match[2] or "s"] if match else 0.0
    if width_s <= 0:
        raise UsageError(f"{text!r} is not a bin width", "e.g. 1s, 100ms, 0.5")
    return width_s


@dataclass(frozen=True)
class _FlowsOfPackets:
    """Each packet's flow and direction, and each flow's first packet from its source."""

    flow: Array  # of each packet, in the order of protocols and streams
    data: Array  # mask: from the side with more payload; of two equals, the one that began
    first: Array  # of each flow, the place of its first such packet


def read_bins(path: Path, width_s: float, *, tunnels: bool = False) -> CaptureTable:
    """Return a capture's flows over time."""
    arrays = read_arrays(path, BIN_NEEDS, tunnels=tunnels)
    return CaptureTable(flow_bins(arrays, path.name, width_s), arrays.warnings)


def flow_bins(arrays: Arrays, file: str, width_s: float) -> pa.Table:
    """Return every flow's bins from its first packet's to its last's, empty ones too."""
    packets = arrays.columns
    width_ns = max(1, round(width_s * 1e9))
    flows = _sort_by_flow(packets)
    bins = (packets["time_ns"] - arrays.start_ns) // width_ns
    low, counts = _spans(flows, bins, file, width_s)
    begin = np.cumsum(counts) - counts
    place = begin[flows.flow] + bins - low[flows.flow]
    total = int(counts.sum())

    def number(which: Array) -> Array:
        return np.bincount(place[which], minlength=total)

    def total_of(which: Array, name: str) -> Array:
        return np.bincount(place[which], weights=packets[name][which], minlength=total)

    timed = ~flows.data & arrays.column(TIMED) & ~np.isnan(packets["ack_rtt_ms"])
    with np.errstate(invalid="ignore"):
        rtt_mean_ms = total_of(timed, "ack_rtt_ms") / number(timed)
    flow = np.repeat(np.arange(len(counts)), counts)
    of = {name: column[flows.first] for name, column in packets.items()}
    src, dst = (endpoints(of[end], of[f"{end}_port"], arrays.addresses) for end in ("src", "dst"))
    return table_of(
        {
            "file": constant(file, total),
            "flow": of["stream"][flow],
            "kind": labels(of["protocol"][flow], PROTOCOL_KINDS),
            "src": src.take(numbers(flow)),
            "dst": dst.take(numbers(flow)),
            # of the bin, since the capture's first packet
            "start_s": (np.arange(total) - begin[flow] + low[flow]) * (width_ns / 1e9),
            "packets": number(flows.data),  # from src, of any kind
            "throughput_mbps": total_of(flows.data, "length") * 8e3 / width_ns,
            "wireshark_retransmissions": number(flows.data & arrays.marked("retransmission")),
            "out_of_order": number(flows.data & arrays.marked("out_of_order")),
            "duplicate_acks": number(~flows.data & arrays.marked("duplicate_ack")),  # from dst
            "rtt_mean_ms": rtt_mean_ms,  # of the acknowledgements in the bin
        }
    )


def _sort_by_flow(packets: Mapping[str, Array]) -> _FlowsOfPackets:
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
    return _FlowsOfPackets(flow, data, places[firsts])


def _spans(flows: _FlowsOfPackets, bins: Array, file: str, width_s: float) -> tuple[Array, Array]:
    """Return each flow's first bin and the number of its bins."""
    low = np.full(len(flows.first), np.iinfo(np.int64).max)
    high = np.full(len(flows.first), np.iinfo(np.int64).min)
    np.minimum.at(low, flows.flow, bins)
    np.maximum.at(high, flows.flow, bins)
    total = float((high.astype(np.float64) - low + 1).sum())
    if total > MAX_BINS:
        raise UsageError(
            f"{file}: {total:.0f} rows of {width_s:g} s, more than {MAX_BINS}",
            "take a wider --bin",
        )
    return low, high - low + 1
