"""Measures of one flow's packets at one capture: `data` are the packets in the direction of the
flow's data, `acks` those of the other direction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.tcp_stream import Integers, delivered_bytes, unwrap

NAN = float("nan")
ACK = 0x10
PORTS = ["src_port", "dst_port"]  # which tell connections apart


@dataclass(frozen=True)
class Interval:
    """A stretch of the captures' clock; both ends belong to it."""

    start_ns: int
    stop_ns: int

    @property
    def seconds(self) -> float:
        """The length of the interval."""
        return (self.stop_ns - self.start_ns) / 1e9

    def rate_mbps(self, size_bytes: float) -> float:
        """Bytes in the interval as a rate; NaN for an interval of no length."""
        return size_bytes * 8e-6 / self.seconds if self.stop_ns > self.start_ns else NAN

    def holds(self, time_ns: pd.Series[int]) -> pd.Series[bool]:
        """A mask of the times that lie in it."""
        return (time_ns >= self.start_ns) & (time_ns <= self.stop_ns)


def throughput_mbps(data: pd.DataFrame, interval: Interval) -> float:
    """Rate of the frames."""
    return interval.rate_mbps(float(data.loc[interval.holds(data["time_ns"]), "length"].sum()))


def goodput_mbps(data: pd.DataFrame, interval: Interval, protocol: str) -> float:
    """Rate of the bytes that reached the application, summed over the flow's connections."""
    if protocol == "udp":
        payload = data.loc[interval.holds(data["time_ns"]), "payload"]
        return interval.rate_mbps(float(payload.sum()))
    size = sum(_advance(rows, interval) for _, rows in data.groupby(PORTS))
    return interval.rate_mbps(size)


def _advance(rows: pd.DataFrame, interval: Interval) -> int:
    """How far one connection's contiguous bytes advanced within the interval."""
    delivered = np.concatenate(([0], delivered_bytes(rows)))
    times = rows["time_ns"].to_numpy()
    before = int((times < interval.start_ns).sum())
    until = int((times <= interval.stop_ns).sum())
    return int(delivered[until] - delivered[before])


def data_packets(data: pd.DataFrame) -> int:
    """The number of packets that carry data."""
    return int((data["payload"] > 0).sum())


def rtts(data: pd.DataFrame, acks: pd.DataFrame) -> pd.DataFrame:
    """Round-trip times (`rtt_ms`) by the time of the acknowledgement (`time_ns`).

    Wireshark's ack_rtt also measures handshakes: only what acknowledges data counts.
    """
    carriers = data.loc[data["payload"] > 0, "frame"]
    found = acks[acks["acked_frame"].isin(carriers) & acks["ack_rtt_ms"].notna()]
    return found[["time_ns", "ack_rtt_ms"]].rename(columns={"ack_rtt_ms": "rtt_ms"})


def recovery_latencies(data: pd.DataFrame, acks: pd.DataFrame) -> pd.DataFrame:
    """The time from each segment's first transmission (`sent_ns`) to the acknowledgement that
    covers it (`recovery_ms`); segments that were never acknowledged are left out.
    """
    answers = dict(iter(acks.groupby(PORTS[::-1])))
    found = [
        _until_covered(rows, answers[ports])
        for ports, rows in data.groupby(PORTS)
        if ports in answers
    ]
    sent = np.concatenate([np.zeros(0, np.int64), *(sent for sent, _ in found)])
    covered = np.concatenate([np.zeros(0, np.int64), *(covered for _, covered in found)])
    return pd.DataFrame({"sent_ns": sent, "recovery_ms": (covered - sent) / 1e6})


def _until_covered(data: pd.DataFrame, acks: pd.DataFrame) -> tuple[Integers, Integers]:
    """The times at which one connection's segments were first sent, and covered."""
    data = data[data["payload"] > 0]
    acks = acks[(acks["flags"] & ACK) > 0]
    if data.empty or acks.empty:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    both = pd.concat((data["seq"].iloc[:1], acks["ack"])).to_numpy(dtype=np.int64)
    reached = np.maximum.accumulate(unwrap(both)[1:])
    ends = unwrap(data["seq"].to_numpy(dtype=np.int64)) + data["payload"].to_numpy(dtype=np.int64)
    highest = np.maximum.accumulate(ends)
    first = np.diff(highest, prepend=highest[:1] - 1) > 0  # a retransmission reaches no further
    place = np.searchsorted(reached, ends[first])
    known = place < len(reached)
    sent, covered = data["time_ns"].to_numpy()[first], acks["time_ns"].to_numpy()
    return sent[known], covered[place[known]]


def low_mean_high(values: Iterable[float]) -> tuple[float, float, float]:
    """Minimum, mean and 95th percentile; NaN for nothing."""
    array: npt.NDArray[np.float64] = np.asarray(list(values), dtype=np.float64)
    if not len(array):
        return NAN, NAN, NAN
    return float(array.min()), float(array.mean()), float(np.percentile(array, 95))


def jain(rates: Iterable[float]) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    array = np.asarray(list(rates), dtype=np.float64)
    squares = float((array**2).sum())
    return float(array.sum() ** 2 / (len(array) * squares)) if squares > 0 else NAN
