"""A capture's flows over time: one row per flow and bin, of any width."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from analysis.captures.flow_table import directions, endpoint
from analysis.captures.tcp import Packets
from testbed.errors import UsageError

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
MAX_BINS = 10_000_000  # of one flow: more is a slip of the pen

COLUMNS = (
    "file",
    "flow",
    "kind",
    "src",
    "dst",
    "start_s",  # of the bin, since the capture's first packet
    "packets",  # from src, of any kind
    "throughput_mbps",  # of their frames
    "retransmissions",
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


def flow_bins(packets: Packets, file: str, width_s: float) -> pd.DataFrame:
    """Every flow's bins from its first packet's to its last's, empty ones too."""
    groups = packets.rows.groupby(["protocol", "stream"], observed=True)
    tables = [_bins(rows, packets.start_ns, file, width_s) for _, rows in groups]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)


def _bins(rows: pd.DataFrame, start_ns: int, file: str, width_s: float) -> pd.DataFrame:
    data, acks = directions(rows)
    width_ns = max(1, round(width_s * 1e9))
    bins = (rows["time_ns"] - start_ns) // width_ns
    first, count = int(bins.min()), int(bins.max() - bins.min()) + 1
    if count > MAX_BINS:
        raise UsageError(
            f"{file}: {count} bins of {width_s:g} s for one flow", "take a wider --bin"
        )

    def total(of: pd.DataFrame, weights: pd.Series) -> np.ndarray:
        places = ((of["time_ns"] - start_ns) // width_ns - first).to_numpy()
        return np.bincount(places, weights=weights.to_numpy(dtype=np.float64), minlength=count)

    def number(of: pd.DataFrame, mark: str) -> np.ndarray:
        return total(of, of[mark]).astype(np.int64)

    sample = data.iloc[0]
    timed = acks[acks["ack_rtt_ms"].notna()]
    counted = total(timed, timed["ack_rtt_ms"].notna())
    with np.errstate(invalid="ignore"):
        rtt = total(timed, timed["ack_rtt_ms"]) / counted
    columns = {
        "file": file,
        "flow": int(sample["stream"]),
        "kind": str(sample["protocol"]),
        "src": endpoint(sample["src"], sample["src_port"]),
        "dst": endpoint(sample["dst"], sample["dst_port"]),
        "start_s": (np.arange(count) + first) * (width_ns / 1e9),
        "packets": total(data, data["length"] > 0).astype(np.int64),
        "throughput_mbps": total(data, data["length"]) * 8e3 / width_ns,
        "retransmissions": number(data, "retransmission"),
        "out_of_order": number(data, "out_of_order"),
        "duplicate_acks": number(acks, "duplicate_ack"),
        "rtt_mean_ms": rtt,
    }
    return pd.DataFrame(columns, columns=list(COLUMNS))
