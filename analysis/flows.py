"""Any capture becomes one row a flow: a TCP connection or an exchange over UDP."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis import measures
from analysis.measures import Interval
from analysis.tshark import Packets, read_capture

COLUMNS = (
    "file",
    "flow",  # Wireshark's stream number: the filter `tcp.stream == N` shows the flow
    "kind",
    "src",  # the side that sends more payload
    "dst",
    "start_s",  # since the capture's first packet
    "duration_s",  # from the flow's first to its last packet, either direction
    "sent_packets",  # with data, from src; the rest as in metrics.csv, at this capture
    "throughput_mbps",
    "goodput_mbps",
    "retransmissions",
    "fast_retransmissions",
    "spurious_retransmissions",
    "out_of_order",
    "duplicate_acks",
    "rtt_min_ms",
    "rtt_mean_ms",
    "rtt_p95_ms",
)


def capture_flows(path: Path) -> pd.DataFrame:
    """One row a flow, in the order of the first packets; `attrs["warnings"]` tells of damage."""
    packets = read_capture(path)
    table = flow_table(packets, path.name)
    table.attrs["warnings"] = list(packets.warnings)
    return table


def flow_table(packets: Packets, file: str) -> pd.DataFrame:
    """The flows of packets that are already read."""
    groups = packets.rows.groupby(["protocol", "stream"], observed=True)
    rows = [_flow(group, packets.start_ns, file) for _, group in groups]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table = table.astype(dict.fromkeys(COLUMNS[COLUMNS.index("throughput_mbps") :], "float64"))
    return table.sort_values("start_s", kind="stable", ignore_index=True)


def _flow(rows: pd.DataFrame, start_ns: int, file: str) -> dict[str, object]:
    data, acks = directions(rows)
    first, last = int(rows["time_ns"].min()), int(rows["time_ns"].max())
    interval = Interval(first, last)
    kind = str(rows["protocol"].iloc[0])
    sample = data.iloc[0]
    return {
        "file": file,
        "flow": int(sample["stream"]),
        "kind": kind,
        "src": endpoint(sample["src"], sample["src_port"]),
        "dst": endpoint(sample["dst"], sample["dst_port"]),
        "start_s": (first - start_ns) / 1e9,
        "duration_s": interval.seconds,
        "sent_packets": measures.data_packets(data),
        "throughput_mbps": measures.throughput_mbps(data, interval),
        "goodput_mbps": measures.goodput_mbps(data, interval, kind),
        **(_tcp(data, acks) if kind == "tcp" else {}),
    }


def directions(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The direction with more payload first; of two equals, the one that began."""
    first = rows.iloc[0]
    begun = (rows["src"] == first["src"]) & (rows["src_port"] == first["src_port"])
    there, back = rows[begun], rows[~begun]
    return (back, there) if back["payload"].sum() > there["payload"].sum() else (there, back)


def endpoint(address: object, port: object) -> str:
    """An end of a flow as people write it."""
    text = str(address)
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"


def _tcp(data: pd.DataFrame, acks: pd.DataFrame) -> dict[str, object]:
    low, mean, high = measures.low_mean_high(measures.rtts(data, acks)["rtt_ms"])
    return {
        "retransmissions": int(data["retransmission"].sum()),
        "fast_retransmissions": int(data["fast_retransmission"].sum()),
        "spurious_retransmissions": int(data["spurious_retransmission"].sum()),
        "out_of_order": int(data["out_of_order"].sum()),
        "duplicate_acks": int(acks["duplicate_ack"].sum()),
        "rtt_min_ms": low,
        "rtt_mean_ms": mean,
        "rtt_p95_ms": high,
    }
