"""A trial's packets: its captures by the places where they were taken, and each flow's packets."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import (
    Excerpt,
    PacketArrays,
    Packets,
    Rows,
    read_arrays,
    read_capture,
)
from analysis.trials.labels import by_number
from analysis.trials.tcp_stream import Segments, connection
from testbed.errors import TestbedError
from testbed.store.names import CAPTURES_FOLDER, QUEUE_ROLE
from testbed.store.reading import Trial, again
from testbed.store.records import FlowRecord, QueueRecord

BEFORE, BEHIND = "-in", "-out"  # of a queue, in the roles of its captures


def capture_interface(trial: Trial, role: str, flow: FlowRecord) -> str:
    """Return the interface of a flow's capture with this role; empty if it was not taken."""
    for capture in trial.record.captures:
        if f"{role}:{flow.name}" in capture.roles and capture.file:
            return capture.interface
    return ""


def capture_files(trial: Trial) -> dict[str, Path]:
    """Return the capture file of each interface."""
    return {each.interface: trial.path / each.file for each in trial.record.captures if each.file}


def queue_roles(trial: Trial, flow: FlowRecord) -> tuple[str, ...]:
    """Return a flow's captured queues in the order of its path.

    They are named by what their captures' roles begin with: `bottleneck`, or `queue1`, `queue2`, …
    where there are several.
    """
    end = f"{BEHIND}:{flow.name}"
    roles = [role for capture in trial.record.captures for role in capture.roles]
    roles_before = [role.removesuffix(end) for role in roles if role.endswith(end)]
    numbered = [name for name in roles_before if name.startswith(QUEUE_ROLE)]
    return tuple(sorted(numbered, key=by_number)) or tuple(roles_before)


def captured_queues(trial: Trial) -> tuple[QueueRecord, ...]:
    """Return the shaped queues at the captured ends of observed links."""
    names = {
        capture.interface
        for capture in trial.record.captures
        if capture.file and any("-in:" in role or "-out:" in role for role in capture.roles)
    }
    return tuple(queue for queue in trial.record.queues if queue.interface in names)


def sender_queue(trial: Trial, flow: FlowRecord, role: str = "sender") -> QueueRecord | None:
    """Return a host's own shaped queue, the sender's unless said, if it has one.

    TCP has sent the packets that wait in it, but the capture is behind it.
    """
    name = capture_interface(trial, role, flow)
    return next((queue for queue in trial.record.queues if queue.interface == name), None)


def sampled_queue(trial: Trial, flow: FlowRecord) -> QueueRecord | None:
    """Return the queue of the flow's bottleneck, or the first that is sampled."""
    sampled = [queue for queue in trial.record.queues if queue.sampled]
    name = capture_interface(trial, "bottleneck-out", flow)
    own_first = sorted(sampled, key=lambda queue: queue.interface != name)
    return next(iter(own_first), None)


NAN = float("nan")
PORTS = ["src_port", "dst_port"]  # which tell connections apart
CACHED_CAPTURES = 32
CACHED_BYTES = 8_000_000  # the packets of a larger capture would fill the memory


def read_cached(path: Path) -> Packets:
    """Read a capture, or return it from memory, where the last few small ones stay.

    Do not modify the result.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise TestbedError(
            f"{path}: {error.strerror}", f"run the trial again: {again(path.parents[1])}"
        ) from error
    if state.st_size > CACHED_BYTES:
        return read_capture(path)
    return _read_version(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(CACHED_CAPTURES)
def _read_version(path: Path, _size: int, _time_ns: int) -> Packets:
    return read_capture(path)


class TrialPackets:
    """A trial's captures, each read once, and each flow's packets in them.

    A capture must be what the trial recorded, which whoever has `checked` them knows already.
    With an excerpt, its packets alone are read.
    """

    def __init__(
        self, trial: Trial, *, checked: bool = False, excerpt: Excerpt | None = None
    ) -> None:
        self._trial = trial
        self._excerpt = excerpt
        self._checked = checked
        self._read: dict[Path, Packets] = {}
        self._selected: dict[tuple[Path, str], FlowTables] = {}
        self._parts: dict[tuple[Path, str], FlowPackets[PacketArrays]] = {}
        self._connections: dict[str, tuple[Segments, ...] | None] = {}

    def capture(self, role: str, flow: str) -> Packets | None:
        """Return the capture with a role for a flow; None if the scenario took none."""
        path = self._trial.capture(f"{role}:{flow}")
        return None if path is None else self.read(path)

    def read(self, path: Path) -> Packets:
        """Read the packets of one of the trial's captures."""
        if path not in self._read:
            if not self._checked:
                self._trial.file(f"{CAPTURES_FOLDER}/{path.name}")
            self._read[path] = (
                Packets(read_arrays(path, excerpt=self._excerpt))
                if self._excerpt
                else read_cached(path)
            )
        return self._read[path]

    def flow(self, role: str, record: FlowRecord) -> FlowTables | None:
        """Return the flow's packets at a capture with this role; None if it was not taken."""
        path = self._trial.capture(f"{role}:{record.name}")
        return None if path is None else self.at(path, record)

    def at(self, path: Path, record: FlowRecord) -> FlowTables:
        """Return the flow's packets in one of the captures."""
        key = (path, record.name)
        if key not in self._selected:
            rows, part = self.read(path).rows, self.part_at(path, record)
            self._selected[key] = FlowPackets(
                rows.iloc[part.data.index], rows.iloc[part.acks.index]
            )
        return self._selected[key]

    def part(self, role: str, record: FlowRecord) -> FlowPackets[PacketArrays] | None:
        """Return the flow's packets at a capture as plain arrays; None if it was not taken."""
        path = self._trial.capture(f"{role}:{record.name}")
        return None if path is None else self.part_at(path, record)

    def part_at(self, path: Path, record: FlowRecord) -> FlowPackets[PacketArrays]:
        """Return the flow's packets in one of the captures as plain arrays."""
        key = (path, record.name)
        if key not in self._parts:
            self._parts[key] = select(self.read(path).part, record)
        return self._parts[key]

    def connections(self, record: FlowRecord) -> tuple[Segments, ...] | None:
        """Return a TCP flow's connections at its sender.

        None if they were not captured whole, and for a workload, whose connections come and go
        (`analysis/transfers`).
        """
        if record.name not in self._connections:
            self._connections[record.name] = self._at_sender(record)
        return self._connections[record.name]

    def _at_sender(self, record: FlowRecord) -> tuple[Segments, ...] | None:
        captured = self.part("sender", record)
        if captured is None or self._trial.scenario.flow(record.name).workload is not None:
            return None
        whole = [
            connection(captured.data, captured.acks, ends) for ends in ports_of(captured, record)
        ]
        known = tuple(each for each in whole if each is not None)
        return known if known and len(known) == len(whole) else None

    def starts_at_bottleneck(self, flow: str) -> bool:
        """Whether the flow's sender feeds the bottleneck's queue itself."""
        return self._trial.capture(f"sender:{flow}") == self._trial.capture(
            f"bottleneck-out:{flow}"
        )

    @property
    def warnings(self) -> list[str]:
        """Warnings about the captures read so far."""
        return [warning for packets in self._read.values() for warning in packets.warnings]

    def end_ns(self) -> int:
        """Return the time of the last packet of all captures."""
        captures = [self.read(path) for path in capture_files(self._trial).values()]
        ends = [int(each.part["time_ns"].max()) for each in captures if len(each.part)]
        return max(ends, default=0)


@dataclass(frozen=True)
class FlowPackets(Generic[Rows]):
    """A flow's packets at one capture, by direction."""

    data: Rows
    acks: Rows


FlowTables = FlowPackets[pd.DataFrame]


def _is(rows: pd.DataFrame | PacketArrays, column: str, name: str) -> npt.NDArray[np.bool_]:
    if isinstance(rows, PacketArrays):
        return rows.places(column, name)
    return np.asarray(rows[column] == name)


def select(rows: Rows, flow: FlowRecord) -> FlowPackets[Rows]:
    """Select the packets with the flow's addresses, and its ports where they are known."""
    is_of_flow = _is(rows, "protocol", flow.protocol)

    def between(src: str, dst: str) -> npt.NDArray[np.bool_]:
        return is_of_flow & _is(rows, "src", src) & _is(rows, "dst", dst)

    there = between(flow.src_address, flow.dst_address)
    back = between(flow.dst_address, flow.src_address)
    src_port, dst_port = np.asarray(rows["src_port"]), np.asarray(rows["dst_port"])
    if flow.src_ports:
        there &= np.isin(src_port, flow.src_ports)
        back &= np.isin(dst_port, flow.src_ports)
    if flow.dst_port:
        there &= dst_port == flow.dst_port
        back &= src_port == flow.dst_port
    return FlowPackets(rows[there], rows[back])


def ports_of(packets: FlowPackets[Rows], flow: FlowRecord) -> tuple[tuple[int, int], ...]:
    """Return the ports, the sender's first, of each of a flow's connections.

    They are as planned or, where a program chose them, as captured, in the order of their first
    packets.
    """
    if not flow.has_many_connections:
        return tuple((port, flow.dst_port) for port in flow.src_ports)
    columns = (np.asarray(packets.data[name]).tolist() for name in PORTS)
    return tuple(dict.fromkeys(zip(*columns, strict=True)))


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

    def holds(self, times: pd.Series[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return a mask of the times that lie in the interval."""
        time_ns = np.asarray(times)
        return (time_ns >= self.start_ns) & (time_ns <= self.stop_ns)


def epoch_ns(trial: Trial) -> int:
    """Return the captures' clock at second 0, which lies on a round microsecond."""
    return round(trial.record.epoch_s * 1e6) * 1000


def capture_ns(trial: Trial, time_s: pd.Series[float]) -> npt.NDArray[np.int64]:
    """Convert times of the trial's clock, such as those of samples, to the captures' clock."""
    since_ns = np.round(time_s.to_numpy(dtype=np.float64) * 1e9).astype(np.int64)
    return epoch_ns(trial) + since_ns


def whole_interval(trial: Trial, flow: FlowRecord) -> Interval:
    """Return the interval in which the flow ran, on the captures' clock."""
    zero = epoch_ns(trial)
    return Interval(zero + round(flow.started_s * 1e9), zero + round(flow.stopped_s * 1e9))


def measured_interval(trial: Trial, flow: FlowRecord) -> Interval:
    """Return the interval in which the flow is measured.

    That is while it ran, without what the scenario leaves out at the start.
    """
    whole = whole_interval(trial, flow)
    begin_ns = epoch_ns(trial) + round(trial.scenario.measure_from_s * 1e9)
    return Interval(min(max(whole.start_ns, begin_ns), whole.stop_ns), whole.stop_ns)


def settled_ns(trial: Trial) -> int:
    """Return the time from which packets count; 0: all count."""
    begin_s = trial.scenario.measure_from_s
    return epoch_ns(trial) + round(begin_s * 1e9) if begin_s else 0
