"""A column of the metrics, a group of columns that are computed together, and what they measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.captures.packet_matching import one_way_delays_ms
from analysis.captures.tcp import PacketArrays
from analysis.trials.packets import (
    NAN,
    FlowPackets,
    FlowTables,
    Interval,
    TrialPackets,
    measured_interval,
    settled_ns,
)
from analysis.trials.samples import Samples
from analysis.trials.tcp_stream import recovery_latencies, round_trips
from testbed.scenario.model import Flow
from testbed.scenario.network import HEADERS_BYTES
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord


@dataclass(frozen=True)
class MeasuredFlow:
    """The flow's record, the trial's captures and samples, and the interval that counts."""

    trial: Trial
    record: FlowRecord
    packets: TrialPackets
    samples: Samples

    @property
    def scenario_flow(self) -> Flow:
        """The flow in the scenario."""
        return self.trial.scenario.flow(self.record.name)

    @property
    def is_tcp(self) -> bool:
        """Whether its data travels over TCP."""
        return self.record.protocol == "tcp"

    @cached_property
    def has_cut_headers(self) -> bool:
        """Whether packets were captured so short that options of TCP may be missing."""
        least = HEADERS_BYTES[6 if ":" in self.record.src_address else 4]
        return self.is_tcp and any(
            each.snaplen_bytes < least for each in self.trial.record.captures if each.file
        )

    @cached_property
    def interval(self) -> Interval:
        """The measured interval, on the captures' clock."""
        return measured_interval(self.trial, self.record)

    def tables(self, role: str) -> FlowTables | None:
        """Return the flow's packets at a capture, as tables."""
        return self.packets.flow(role, self.record)

    def settled_tables(self, role: str) -> FlowTables | None:
        """Return its packets at a capture, after its stop too, without what the scenario omits."""
        tables, begin_ns = self.tables(role), settled_ns(self.trial)
        if tables is None or not begin_ns:
            return tables
        data, acks = (rows[rows["time_ns"] >= begin_ns] for rows in (tables.data, tables.acks))
        return FlowPackets(data, acks)

    def packets_at(self, role: str) -> FlowPackets[PacketArrays] | None:
        """Return the flow's packets at a capture, as arrays."""
        return self.packets.part(role, self.record)

    def measured_packets(self, role: str) -> FlowPackets[PacketArrays] | None:
        """Return its packets that pass a capture in the measured interval, as arrays."""
        if role not in self._measured_packets:
            captured = self.packets_at(role)
            self._measured_packets[role] = captured and FlowPackets(
                *(
                    rows[self.interval.holds(rows["time_ns"])]
                    for rows in (captured.data, captured.acks)
                )
            )
        return self._measured_packets[role]

    @cached_property
    def _measured_packets(self) -> dict[str, FlowPackets[PacketArrays] | None]:
        return {}

    def delays(self, first: str, second: str) -> pd.DataFrame | None:
        """Return the one-way delays between two captures; None if one of them is missing."""
        if (first, second) not in self._delays:
            before, after = self.packets_at(first), self.packets_at(second)
            self._delays[first, second] = (
                None
                if before is None or after is None
                else one_way_delays_ms(before.data, after.data)
            )
        return self._delays[first, second]

    @cached_property
    def _delays(self) -> dict[tuple[str, str], pd.DataFrame | None]:
        return {}

    @cached_property
    def round_trips(self) -> pd.DataFrame | None:
        """A TCP flow's round-trip times at its sender; None if that was not captured whole."""
        sender = self.packets_at("sender") if self.is_tcp and not self.has_cut_headers else None
        return round_trips(sender.acks) if sender else None

    @cached_property
    def recoveries(self) -> pd.DataFrame | None:
        """The times until its segments were acknowledged, likewise."""
        sender = self.packets_at("sender")
        return recovery_latencies(sender.data, sender.acks) if sender and self.is_tcp else None

    def measured(self, delays: pd.DataFrame, time: str, delay: str) -> Floats:
        """Return the delays in ms of those whose time lies in the measured interval."""
        counting = self.interval.holds(delays[time])
        return delays[delay].to_numpy(dtype=np.float64)[counting]


Row = dict[str, object]
Floats = npt.NDArray[np.float64]


def _nothing(_flow: MeasuredFlow) -> Row:
    return {}


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that stand side by side, and the function that computes them for a flow that ran.

    The function leaves out what is not known; the table then has NaN there. A group without one
    is filled in when all flows of the trial are known.
    """

    columns: tuple[Metric, ...]
    measure: Callable[[MeasuredFlow], Row] = _nothing


def low_mean_high(values: Iterable[float]) -> tuple[float, float, float]:
    """Minimum, mean and 95th percentile; NaN for nothing."""
    array: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if not len(array):
        return NAN, NAN, NAN
    return float(array.min()), float(array.mean()), float(np.percentile(array, 95))
