"""A capture as one row per flow: a TCP connection or an exchange over UDP.

The sums are made while the capture is read, so that the memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.captures.native import Core, Flow
from analysis.captures.pcap import feed

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

NAN = float("nan")
TCP = 0  # enum protocol of core.h


@dataclass(frozen=True)
class FlowRow:
    """A flow's numbers, at one capture; those of TCP alone are NaN for UDP."""

    file: str
    flow: int  # Wireshark's stream number: the filter `tcp.stream == N` shows the flow
    kind: str
    src: str  # the side that sends more payload
    dst: str
    start_s: float  # since the capture's first packet
    duration_s: float  # from the flow's first to its last packet, either direction
    sent_packets: int  # with data, from src; the rest as in metrics.csv, at this capture
    throughput_mbps: float
    goodput_mbps: float
    retransmissions: float
    fast_retransmissions: float
    spurious_retransmissions: float
    out_of_order: float
    duplicate_acks: float
    rtt_min_ms: float
    rtt_mean_ms: float
    rtt_p95_ms: float  # exact up to 16384 round trips, beyond that to a part in 1024


COLUMNS = tuple(each.name for each in fields(FlowRow))
# the same columns as a table for people heads them
HEADINGS = (
    *("file", "flow", "kind", "src", "dst", "start s", "length s", "packets", "Mbit/s"),
    *("goodput", "retr.", "fast", "spurious", "out of order", "dup. ACKs"),
    *("RTT min", "mean", "95 % ms"),
)


@dataclass(frozen=True)
class Flows:
    """The flows of a capture by the time of their first packets, and what was wrong with it."""

    rows: tuple[FlowRow, ...]
    warnings: tuple[str, ...]


def capture_flows(path: Path) -> pd.DataFrame:
    """One row per flow, in the order of the first packets; `attrs["warnings"]` reports damage."""
    flows = read_flows(path)
    table = flow_table(flows.rows)
    table.attrs["warnings"] = list(flows.warnings)
    return table


def flow_table(rows: Iterable[FlowRow]) -> pd.DataFrame:
    """The rows as a table."""
    import pandas as pd

    table = pd.DataFrame([vars(row) for row in rows], columns=list(COLUMNS))
    return table.astype(dict.fromkeys(COLUMNS[COLUMNS.index("throughput_mbps") :], "float64"))


def read_flows(path: Path) -> Flows:
    """Read a capture once and sum up its flows."""
    with closing(Core(with_flows=True)) as core:
        warnings = feed(path, core, lambda: None)
        addresses = core.addresses()
        rows = [
            _row(core, number, flow, path.name, addresses)
            for number, flow in enumerate(core.flows())
        ]
    return Flows(tuple(sorted(rows, key=lambda row: row.start_s)), warnings)


def _row(core: Core, number: int, flow: Flow, file: str, addresses: list[str]) -> FlowRow:
    src = _sender(flow)
    data, acks = flow.sides[src], flow.sides[1 - src]
    tcp = flow.protocol == TCP
    duration_s = (flow.last_ns - flow.first_ns) / 1e9
    return FlowRow(
        file=file,
        flow=flow.stream,
        kind="tcp" if tcp else "udp",
        src=endpoint(addresses[data.address], data.port),
        dst=endpoint(addresses[acks.address], acks.port),
        start_s=(flow.first_ns - core.state.start_ns) / 1e9,
        duration_s=duration_s,
        sent_packets=data.data_packets,
        throughput_mbps=_rate_mbps(data.bytes, duration_s),
        goodput_mbps=_rate_mbps(data.delivered if tcp else data.payload, duration_s),
        retransmissions=data.retransmissions if tcp else NAN,
        fast_retransmissions=data.fast_retransmissions if tcp else NAN,
        spurious_retransmissions=data.spurious_retransmissions if tcp else NAN,
        out_of_order=data.out_of_order if tcp else NAN,
        duplicate_acks=acks.duplicate_acks if tcp else NAN,
        rtt_min_ms=data.rtt_low_ms,
        rtt_mean_ms=data.rtt_mean_ms,
        rtt_p95_ms=core.flow_rtt_ms(number, src, 0.95),
    )


def _sender(flow: Flow) -> int:
    """The side with more payload; of two equals, the one that began."""
    began = int(flow.began)
    return began if flow.sides[began].payload >= flow.sides[1 - began].payload else 1 - began


def _rate_mbps(size_bytes: int, duration_s: float) -> float:
    """NaN for a flow of no length, and for a number of bytes that is not known."""
    return size_bytes * 8e-6 / duration_s if duration_s > 0 and size_bytes >= 0 else NAN


def directions(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A flow's packets: those with more payload first; of two equals, those that began."""
    first = rows.iloc[0]
    begun = (rows["src"] == first["src"]) & (rows["src_port"] == first["src_port"])
    there, back = rows[begun], rows[~begun]
    return (back, there) if back["payload"].sum() > there["payload"].sum() else (there, back)


def endpoint(address: object, port: object) -> str:
    """An end of a flow as people write it."""
    text = str(address)
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
