"""Parts of a video flow's digest: packets per second and packet lengths at the viewer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.captures.lengths import packet_lengths
from analysis.metrics.flow_digest import Part
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.video_columns import ERRORS, per_second
from analysis.trials.packets import FlowPackets
from testbed.scenario.model import FlowKind

# `what` of a part; x: the middle of a second since the first packet; value: packets in it
PACKETS = "packets_pps"
ERRORS_SEEN = "errors_pps"
# … followed by a column of Wireshark's packet lengths; x: the line, 0 for all packets
LENGTHS = "lengths "


def parts(flow: MeasuredFlow) -> Iterator[Part]:
    """The viewer's digest, as far as its captures reach."""
    receiver = flow.at("receiver")
    if flow.scenario_flow.kind is FlowKind.VIDEO and receiver is not None:
        yield from video_parts(receiver, flow.record.protocol)


def video_parts(found: FlowPackets, protocol: str) -> Iterator[Part]:
    """Packets and errors second by second, in both directions, and the lengths of packets."""
    both = pd.concat((found.data, found.acks)).sort_values("frame")
    if both.empty:
        return
    begin_ns = int(both["time_ns"].iloc[0])
    yield _seconds(PACKETS, both, begin_ns)
    if protocol == "tcp":
        yield _seconds(ERRORS_SEEN, both[both[list(ERRORS)].any(axis=1)], begin_ns)
    table = packet_lengths(both["time_ns"].to_numpy(), both["length"].to_numpy(), begin_ns)
    for name in table.columns.drop("lengths"):
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        yield f"{LENGTHS}{name}", np.arange(len(table), dtype=np.float64), values


def _seconds(what: str, rows: pd.DataFrame, begin_ns: int) -> Part:
    counts = per_second(rows, begin_ns).astype(np.float64)
    return what, np.arange(len(counts), dtype=np.float64) + 0.5, counts


def lengths_of(digest: pd.DataFrame) -> pd.DataFrame:
    """One flow's packet lengths, one row per line of Wireshark's window."""
    own = digest[digest["what"].str.startswith(LENGTHS)]
    table = own.assign(what=own["what"].str.removeprefix(LENGTHS))
    return table.pivot_table(index="x", columns="what", values="value", dropna=False).sort_index()
