"""A capture as one row per flow: a TCP connection or an exchange over UDP.

The sums are made while the capture is read, so that the memory does not grow with it; a
million flows are a table of columns and never a million objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.captures.native import Core, Flow
from analysis.captures.pcap import feed
from analysis.captures.plain_table import Array, Column, Labels, Table, constant, frame_of
from analysis.captures.unread import unread_frames

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

TCP = 0  # enum protocol of core.h

# the columns, and how a table for people heads them; those of TCP alone are NaN for UDP
HEADINGS: Mapping[str, str] = {
    "file": "file",
    "flow": "flow",  # Wireshark's stream number: the filter `tcp.stream == N` shows the flow
    "kind": "kind",
    "src": "src",  # the side that sends more payload
    "dst": "dst",
    "start_s": "start s",  # since the capture's first packet
    "duration_s": "length s",  # from the flow's first to its last packet, either direction
    "sent_packets": "packets",  # with data, from src; the rest as in metrics.csv, at this capture
    "throughput_mbps": "Mbit/s",
    "goodput_mbps": "goodput",
    "wireshark_retransmissions": "retr.",
    "wireshark_fast_retransmissions": "fast",
    "wireshark_spurious_retransmissions": "spurious",
    "out_of_order": "out of order",
    "duplicate_acks": "dup. ACKs",
    "rtt_min_ms": "RTT min",
    "rtt_mean_ms": "mean",
    "rtt_p95_ms": "95 % ms",  # exact up to 16384 round trips, beyond that to a part in 1024
    "unread": "frames not read",  # of the whole capture, and why; empty if there are none
}
COLUMNS = tuple(HEADINGS)
FLAGS = ("retransmissions", "fast_retransmissions", "spurious_retransmissions", "out_of_order")


@dataclass(frozen=True)
class Flows:
    """The flows of a capture by the time of their first packets, and what was wrong with it."""

    table: Table
    warnings: tuple[str, ...]


def capture_flows(path: Path, *, tunnels: bool = False) -> pd.DataFrame:
    """One row per flow, in the order of the first packets; `attrs["warnings"]` reports damage."""
    flows = read_flows(path, tunnels=tunnels)
    texts = ("file", "kind", "src", "dst", "unread")
    rows = frame_of(flows.table).astype(dict.fromkeys(texts, "str"))
    rows.attrs["warnings"] = list(flows.warnings)
    return rows


def read_flows(path: Path, *, tunnels: bool = False) -> Flows:
    """Read a capture once and sum up its flows; `tunnels`: with those in VXLAN and GENEVE."""
    with closing(Core(with_flows=True, tunnels=tunnels)) as core:
        warnings = feed(path, core, lambda: None)
        flows = np.frombuffer(memoryview(core.flows()), np.dtype(Flow))
        table = _table(flows, core.addresses(), core.state.start_ns, path.name)
        unread = constant(str(unread_frames(core)), len(flows))
        return Flows({**table, "unread": unread}, warnings)


def _table(flows: Array, addresses: list[str], start_ns: int, file: str) -> Table:
    order = np.argsort(flows["first_ns"], kind="stable")
    src = _senders(flows)[order]

    def of(name: str, side: Array) -> Array:
        found: Array = flows["sides"][name][order, side]
        return found

    tcp = flows["protocol"][order] == TCP
    first_ns = flows["first_ns"][order]
    duration_s = _seconds(flows["last_ns"][order], first_ns)
    delivered = np.where(tcp, of("delivered", src), of("payload", src).astype(np.int64))
    ends = [endpoints(of("address", side), of("port", side), addresses) for side in (src, 1 - src)]
    columns: list[Column] = [
        constant(file, len(flows)),
        flows["stream"][order],
        Labels((~tcp).astype(np.int8), ("tcp", "udp")),
        *ends,
        _seconds(first_ns, np.int64(start_ns)),
        duration_s,
        of("data_packets", src).astype(np.int64),
        _rate_mbps(of("bytes", src), duration_s),
        _rate_mbps(delivered, duration_s),
        *(np.where(tcp, of(name, src), np.nan) for name in FLAGS),
        np.where(tcp, of("duplicate_acks", 1 - src), np.nan),
        *(of(name, src) for name in ("rtt_low_ms", "rtt_mean_ms", "rtt_p95_ms")),
    ]
    return dict(zip(COLUMNS[:-1], columns, strict=True))


def _senders(flows: Array) -> Array:
    """The side with more payload; of two equals, the one that began."""
    began = flows["began"].astype(np.int64)
    rows, payload = np.arange(len(flows)), flows["sides"]["payload"]
    return np.where(payload[rows, began] >= payload[rows, 1 - began], began, 1 - began)


def _seconds(later: Array, earlier: Array | np.int64) -> Array:
    """The distance of two times, which may be more than 64 bits hold with a sign."""
    forward = later >= earlier
    with np.errstate(over="ignore"):
        gap = np.where(forward, later - earlier, earlier - later).view(np.uint64) / 1e9
    return np.where(forward, gap, -gap)


def _rate_mbps(size_bytes: Array, duration_s: Array) -> Array:
    """NaN for a flow of no length, and for a number of bytes that is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = size_bytes * 8e-6 / duration_s
    return np.where((duration_s > 0) & (size_bytes >= 0), rate, np.nan)


def endpoints(address: Array, port: Array, addresses: Sequence[str]) -> Labels:
    """The ends of flows as people write them; `address` is a place among the addresses."""
    keys, codes = np.unique(address.astype(np.int64) << 16 | port, return_inverse=True)
    pairs = ((addresses[key >> 16], key & 0xFFFF) for key in keys.tolist())
    return Labels(codes, tuple(f"[{a}]:{p}" if ":" in a else f"{a}:{p}" for a, p in pairs))
