"""What the checks look at: a trial's captures, samples and reports, each read once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.packets import FlowPackets, TrialPackets, epoch_ns
from analysis.trials.samples import read_counters, read_samples
from analysis.trials.segments import Segments, connection
from testbed.scenario.model import FRAME_OVERHEAD_BYTES
from testbed.store import FLOWS, SAMPLES, FlowRecord, QueueRecord, Trial

Integers = npt.NDArray[np.int64]

FRAME_BYTES = 1500 + FRAME_OVERHEAD_BYTES
LEAF = "30:"  # the plan's handle of the queue below htb
REFUSED = "TcpExtTCPRetransFail"
RETIRE_NS = 10**9  # what tcpdump has seen is written within this (testbed/plan/plan.py)
WIRES = "wires"  # the plan's node that holds links with a delay


@dataclass(frozen=True)
class Crossing:
    """A flow's packets of one direction on both sides of a queue; `entered` is None where the
    flow starts at the queue's own node."""

    flow: FlowRecord
    entered: pd.DataFrame | None
    left: pd.DataFrame


@dataclass(frozen=True)
class Asked:
    """What a dropper counted: losses by chance at the interface by which the flow goes to its
    receiver, exact losses (no interface) where it comes to its first router."""

    dropped: int
    interface: str
    undecided: int  # segments that came when its runs had run out


class Evidence:
    """A trial that ran."""

    def __init__(self, trial: Trial, packets: TrialPackets) -> None:
        self.trial = trial
        self.packets = packets
        self.engine = trial.record.engine
        self.flows = trial.record.flows
        self.tcp = tuple(flow for flow in self.flows if flow.protocol == "tcp")
        background = trial.record.background
        self.traffic = (*self.flows, *((background,) if background else ()))  # all of it
        self.epoch_ns = epoch_ns(trial)
        self._segments: dict[str, tuple[Segments, ...] | None] = {}

    @property
    def is_older(self) -> bool:
        """Whether the recorder did not yet note what was asked for."""
        return not self.trial.record.queues

    def at(self, role: str, flow: FlowRecord) -> FlowPackets | None:
        """A flow's packets at a capture."""
        return self.packets.flow(role, flow)

    def interface(self, role: str, flow: FlowRecord) -> str:
        """Where that capture was taken; empty if it was not."""
        for capture in self.trial.record.captures:
            if f"{role}:{flow.name}" in capture.roles and capture.file:
                return capture.interface
        return ""

    def ns(self, time_s: pd.Series[float]) -> Integers:
        """Times of the trial's clock as captures have them."""
        return self.epoch_ns + np.round(time_s.to_numpy(dtype=np.float64) * 1e9).astype(np.int64)

    def segments(self, flow: FlowRecord) -> tuple[Segments, ...] | None:
        """A TCP flow's connections at its sender; None if they were not captured whole."""
        if flow.name not in self._segments:
            self._segments[flow.name] = self._connections(flow)
        return self._segments[flow.name]

    def _connections(self, flow: FlowRecord) -> tuple[Segments, ...] | None:
        found = self.at("sender", flow)
        if found is None:
            return None
        whole = [connection(found.data, found.acks, port) for port in flow.src_ports]
        known = tuple(each for each in whole if each is not None)
        return known if len(known) == len(whole) else None

    def own_queue(self, flow: FlowRecord) -> QueueRecord | None:
        """The shaped queue of the sender's own: TCP has sent what waits there, and the capture
        behind it has not seen it."""
        name = self.interface("sender", flow)
        return next((q for q in self.trial.record.queues if q.interface == name), None)

    def own_queue_ns(self, flow: FlowRecord) -> int:
        """How long a packet may wait in that queue."""
        if (queue := self.own_queue(flow)) is None:
            return 0
        size = queue.limit * (1 if queue.unit == "bytes" else FRAME_BYTES) + FRAME_BYTES
        return round(size * 8e3 / queue.rate_mbit)

    def refused_again(self, node: str) -> int:
        """Segments that a host's TCP counts as sent again, and whose copy its own queue had no
        room for: they are on no wire, and it tries anew."""
        return read_counters(self.trial, node).get(REFUSED, 0)

    def refused_new(self, flow: FlowRecord) -> int:
        """Segments of new data that the sender's own queue had no room for, at most: to TCP they
        are under way."""
        leaf = self.leaves.get(self.interface("sender", flow), {})
        again = self.refused_again(self.trial.scenario.flow(flow.name).src)
        return max(0, int(leaf.get("drops", 0)) - again)

    def has_unknown_queue(self, flow: FlowRecord) -> bool:
        """Whether the sender has a queue of its own that an older trial does not describe."""
        return self.is_older and self.interface("sender", flow) in self.leaves

    @cached_property
    def sockets(self) -> pd.DataFrame | None:
        """All samples of sockets."""
        return read_samples(self.trial, "sockets.csv")

    @cached_property
    def queues(self) -> pd.DataFrame | None:
        """All samples of queues."""
        return read_samples(self.trial, "queues.csv")

    @cached_property
    def counted_ns(self) -> Integers:
        """When the hosts' counters were read: one instant, of the captures' clock."""
        last_s = [
            float(table["time_s"].iloc[-1])
            for table in (self.sockets, self.queues)
            if table is not None and len(table)
        ]
        return np.array([self.epoch_ns + round(max(last_s, default=0.0) * 1e9) - RETIRE_NS])

    def socket(self, flow: FlowRecord) -> pd.DataFrame | None:
        """A flow's samples until its stop."""
        if self.sockets is None:
            return None
        own = self.sockets[
            (self.sockets["flow"] == flow.name) & (self.sockets["time_s"] <= flow.stopped_s + 1e-6)
        ]
        return None if own.empty else own

    def queue_end(self, interface: str) -> pd.Series[Any] | None:
        """A sampled queue's counters at the trial's end."""
        if self.queues is None:
            return None
        own = self.queues[self.queues["interface"] == interface]
        return None if own.empty else own.iloc[-1]

    @cached_property
    def leaves(self) -> dict[str, dict[str, Any]]:
        """The final statistics of every shaped interface's queue, as tc told them."""
        return {
            each["dev"]: each
            for node in self._disciplines.values()
            for each in node
            if each["handle"] == LEAF
        }

    @cached_property
    def lost_by_channels(self) -> int:
        """What links lost that were asked to lose (a netem there drops nothing else), and the
        frames that a radio has tried in vain."""
        wires = self._disciplines.get(WIRES, [])
        radios = self.medium["radios"] if self.medium else []
        in_vain = sum(int(each["lost"]) for each in radios)
        return in_vain + sum(int(each["drops"]) for each in wires if each["kind"] == "netem")

    @cached_property
    def medium(self) -> dict[str, Any] | None:
        """What the medium of a radio link counted; None if there is none."""
        return self.json(SAMPLES, "radio.json")

    @cached_property
    def _disciplines(self) -> dict[str, list[dict[str, Any]]]:
        """Node by node, with statistics, at the trial's end."""
        return self.json(SAMPLES, "qdiscs.json") or {}

    def json(self, folder: str, name: str) -> dict[str, Any] | None:
        """A JSON file of the trial's; None if it is missing or no JSON."""
        path: Path = self.trial.path / folder / name
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            return None
        return found

    def report(self, flow: FlowRecord, side: str) -> dict[str, Any] | None:
        """What iperf3's client or server said."""
        return self.json(FLOWS, f"{flow.name}.{side}.json")

    def crossings(self, queue: QueueRecord) -> tuple[Crossing, ...]:
        """What leaves by a captured interface: data of the flows and the background that cross it
        that way, and acknowledgements of those that cross it the other way."""
        found = []
        for flow in self.traffic:
            seen = self.packets.at(self._captures[queue.interface], flow)
            there = self.interface("bottleneck-out", flow) == queue.interface
            left = seen.data if there else seen.acks
            if len(left):
                found.append(Crossing(flow, self._entered(queue, flow, there), left))
        return tuple(found)

    def _entered(self, queue: QueueRecord, flow: FlowRecord, there: bool) -> pd.DataFrame | None:
        """The same packets at the interface of the queue's node by which they came."""
        role = "bottleneck-in" if there else "bottleneck-out"
        name, found = self.interface(role, flow), self.at(role, flow)
        nodes = {each.interface: each.node for each in self.trial.record.captures}
        if found is None or nodes[name] != queue.node:
            return None
        return found.data if there else found.acks

    @cached_property
    def _captures(self) -> dict[str, Path]:
        """The captures' files by interface."""
        captures = self.trial.record.captures
        return {each.interface: self.trial.path / each.file for each in captures if each.file}

    @cached_property
    def bottlenecks(self) -> tuple[QueueRecord, ...]:
        """The shaped interfaces that are captured as a bottleneck's ends."""
        names = {
            capture.interface
            for capture in self.trial.record.captures
            if capture.file and any(role.startswith("bottleneck-") for role in capture.roles)
        }
        return tuple(q for q in self.trial.record.queues if q.interface in names)

    @cached_property
    def asked(self) -> dict[str, Asked]:
        """Losses that were asked for, by flow, as the droppers counted them."""
        found = self.json(SAMPLES, "drops.json") or {}
        return {
            flow: Asked(
                int(counts["dropped"]),
                str(counts.get("interface", "")),
                int(counts.get("undecided", 0)),
            )
            for flow, counts in found.items()
        }

    def injected(self, queue: QueueRecord) -> int:
        """Losses that were asked for between the captures before and behind a queue."""
        own = [
            asked
            for flow in self.flows
            if (asked := self.asked.get(flow.name))
            and self.interface("bottleneck-out", flow) == queue.interface
        ]
        return sum(asked.dropped for asked in own if asked.interface in ("", queue.interface))

    def injected_behind(self, flow: FlowRecord) -> int:
        """Losses of a flow that were asked for on the last link before its receiver."""
        asked = self.asked.get(flow.name)
        if asked is None or asked.interface in ("", self.interface("bottleneck-out", flow)):
            return 0
        return asked.dropped
