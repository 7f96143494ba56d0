"""A trial's packets: its captures, and a flow's packets in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.captures.tcp import Packets
from analysis.trials.measures import Interval
from analysis.trials.shared import read_shared
from testbed.store import FlowRecord, Trial


class TrialPackets:
    """A trial's captures, each read once, and a flow's packets in them."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._read: dict[Path, Packets] = {}
        self._selected: dict[tuple[Path, str], FlowPackets] = {}

    def capture(self, role: str, flow: str) -> Packets | None:
        """The capture with a role for a flow, None if the scenario took none."""
        path = self._trial.capture(f"{role}:{flow}")
        return None if path is None else self.read(path)

    def read(self, path: Path) -> Packets:
        """A capture of the trial's."""
        if path not in self._read:
            self._read[path] = read_shared(path)
        return self._read[path]

    def flow(self, role: str, record: FlowRecord) -> FlowPackets | None:
        """The flow's packets at a capture with this role."""
        path = self._trial.capture(f"{role}:{record.name}")
        return None if path is None else self.at(path, record)

    def at(self, path: Path, record: FlowRecord) -> FlowPackets:
        """The flow's packets in one of the captures."""
        key = (path, record.name)
        if key not in self._selected:
            self._selected[key] = select(self.read(path).rows, record)
        return self._selected[key]

    def starts_at_bottleneck(self, flow: str) -> bool:
        """Whether the flow starts at the bottleneck: its sender sends into the queue itself."""
        return self._trial.capture(f"sender:{flow}") == self._trial.capture(
            f"bottleneck-out:{flow}"
        )

    @property
    def warnings(self) -> list[str]:
        """What was wrong with the captures read so far."""
        return [warning for packets in self._read.values() for warning in packets.warnings]

    def end_ns(self) -> int:
        """The last packet of all captures read so far."""
        ends = [int(p.rows["time_ns"].max()) for p in self._read.values() if len(p.rows)]
        return max(ends, default=0)


@dataclass(frozen=True)
class FlowPackets:
    """A flow's packets at one capture, by direction."""

    data: pd.DataFrame
    acks: pd.DataFrame


def select(rows: pd.DataFrame, flow: FlowRecord) -> FlowPackets:
    """The packets with the flow's addresses and ports; one without ports has all of them."""
    own = rows[rows["protocol"] == flow.protocol]

    def between(src: str, dst: str) -> pd.Series[bool]:
        return (own["src"] == src) & (own["dst"] == dst)

    there = between(flow.src_address, flow.dst_address)
    back = between(flow.dst_address, flow.src_address)
    if not flow.src_ports:
        return FlowPackets(own[there], own[back])
    there &= own["src_port"].isin(flow.src_ports) & (own["dst_port"] == flow.dst_port)
    back &= own["dst_port"].isin(flow.src_ports) & (own["src_port"] == flow.dst_port)
    return FlowPackets(own[there], own[back])


def epoch_ns(trial: Trial) -> int:
    """The captures' clock at second 0, which lies on a round microsecond."""
    return round(trial.record.epoch_s * 1e6) * 1000


def whole_interval(trial: Trial, flow: FlowRecord) -> Interval:
    """When the flow ran, on the captures' clock."""
    zero = epoch_ns(trial)
    return Interval(zero + round(flow.started_s * 1e9), zero + round(flow.stopped_s * 1e9))


def measured_interval(trial: Trial, flow: FlowRecord) -> Interval:
    """When it was measured: all the while, but for what the scenario leaves out at the start."""
    whole = whole_interval(trial, flow)
    begin_ns = epoch_ns(trial) + round(trial.scenario.measure_from_s * 1e9)
    return Interval(min(max(whole.start_ns, begin_ns), whole.stop_ns), whole.stop_ns)


def settled_ns(trial: Trial) -> int:
    """From when on packets count, those after a flow's stop included; 0: all of them do."""
    begin_s = trial.scenario.measure_from_s
    return epoch_ns(trial) + round(begin_s * 1e9) if begin_s else 0
