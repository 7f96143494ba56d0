"""The kernel's settings before and after the flows, and its counters in between."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from testbed.machine.process import run
from testbed.plan.delay_links import has_channels
from testbed.plan.host_settings import hosts
from testbed.plan.traffic_control import QueuePlan, burst_bytes
from testbed.scenario.queues import DISCIPLINES, in_own_unit
from testbed.store import (
    CONFIGURATION_FILE,
    COUNTERS_FILE,
    QDISCS_FILE,
    RETIRE_S,
    WIRES,
    QueueRecord,
    Record,
    write_json,
)
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import ActionQueue
from testbed.trial.parts.snapshot import configuration, counters, tcp_settings

# what tc puts into its JSON for a discipline of our own
UNKNOWN_TO_TC = re.compile(r"\[Unknown qdisc, optlen=\d+\] ")


class KernelState(Part):
    """Configuration, the hosts' counters, and the queues' statistics at the end."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._before: dict[str, str] = {}
        self._counters: dict[str, dict[str, int]] = {}

    def open(self) -> None:
        """Read the configuration before anything runs."""
        self._before = configuration(self._trial.plan, self._trial.places)

    def schedule_end(self, timeline: ActionQueue, end_s: float) -> None:
        """Read the hosts' counters while tcpdump still records.

        A packet sent by a late timer after its last read would be counted but not captured.
        """
        timeline.at(end_s - RETIRE_S, self._count)

    def _count(self, _time_s: float) -> None:
        self._counters = {node: counters(pid) for node, pid in self._hosts()}

    def _hosts(self) -> list[tuple[str, int | None]]:
        nodes = sorted(hosts(self._trial.scenario.flows))
        return [(node, self._trial.places[node].pid) for node in nodes]

    def write(self, folder: Path) -> None:
        """Write both readings of the settings, and the counters."""
        after = configuration(self._trial.plan, self._trial.places)
        contents = {
            QDISCS_FILE: {node: self._qdiscs(node) for node in self._nodes_with_queues()},
            COUNTERS_FILE: self._counters,
            CONFIGURATION_FILE: {"begin": self._before, "end": after},
        }
        for name, content in contents.items():
            write_json(folder, name, content)

    def _nodes_with_queues(self) -> list[str]:
        plan = self._trial.plan
        nodes = {queue.node for queue in plan.queues}
        nodes |= {end.node for end in plan.radio.ends} if plan.radio else set()
        if has_channels(plan.network):
            nodes.add(WIRES)
        return sorted(nodes)

    def _qdiscs(self, node: str) -> object:
        shown = run(("tc", "-json", "-s", "qdisc", "show"), place=self._trial.places[node])
        return json.loads(UNKNOWN_TO_TC.sub("", shown.stdout))

    def describe(self, record: Record) -> Record:
        """Add TCP's settings and the queues."""
        return replace(
            record,
            sysctls={node: tcp_settings(pid) for node, pid in self._hosts()},
            queues=tuple(map(_queue_record, self._trial.plan.queues)),
        )


def _queue_record(plan: QueuePlan) -> QueueRecord:
    queue, limit = plan.hop.queue, plan.hop.full
    return QueueRecord(
        node=plan.node,
        interface=plan.interface,
        rate_mbit=plan.hop.rate_mbit,
        burst_bytes=burst_bytes(plan.hop.rate_mbit),
        discipline=queue.discipline,
        limit=in_own_unit(queue, limit),
        unit=DISCIPLINES[queue.discipline].counts,
        ecn=queue.ecn,
        sampled=plan.sampled,
    )
