"""The kernel's settings before and after the flows, and its counters in between.

If anything changed in between (by a user or a daemon), the trial is not the planned one; nor is it
if the settings before are not those of the plan (verify.py).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from testbed.machine import json_files
from testbed.plan.delay_links import has_channels
from testbed.plan.host_settings import hosts
from testbed.plan.traffic_control import QueuePlan, burst_bytes
from testbed.runner.programme import Answers
from testbed.scenario.queues import DISCIPLINES, in_own_unit
from testbed.store.names import CONFIGURATION_FILE, COUNTERS_FILE, QDISCS_FILE, RETIRE_S, WIRES
from testbed.store.records import QueueRecord, Record
from testbed.store.writing import write_json
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline
from testbed.trial.parts.snapshot import Snapshot, counters
from testbed.trial.parts.verify import verify

# what tc puts into its JSON for a discipline of our own
UNKNOWN_TO_TC = re.compile(r"\[Unknown qdisc, optlen=\d+\] ")
COUNTER_FILES = ("/proc/self/net/netstat", "/proc/self/net/snmp")
VERSION_FILES = tuple(f"/proc/sys/kernel/{name}" for name in ("ostype", "osrelease", "version"))


class KernelState(Part):
    """Configuration, the hosts' counters, and the queues' statistics at the end."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._counted: dict[str, int] = {}
        self._shown: dict[str, int] = {}
        self._tcp: dict[str, int] = {}

    def watch(self) -> None:
        """Read the configuration before anything runs."""
        self._version = self._programme.add("read", "-", *VERSION_FILES)
        self._before = Snapshot(self._trial.plan, self._programme)

    def schedule_end(self, timeline: TrialTimeline, end_s: float) -> None:
        """Read the hosts' counters while the captures go on.

        A packet sent by a late timer after its last read would be counted but not captured.
        """
        timeline.at(end_s - RETIRE_S, lambda _at: self._count())

    def _count(self) -> None:
        for node in self._hosts:
            self._counted[node] = self._programme.add("read", node, *COUNTER_FILES)

    @property
    def _hosts(self) -> list[str]:
        return sorted(hosts(self._trial.scenario.flows))

    def close(self) -> None:
        """Read the configuration again, the queues' statistics and TCP's settings."""
        self._after = Snapshot(self._trial.plan, self._programme)
        for node in self._nodes_with_queues():
            argv = ("tc", "-json", "-s", "qdisc", "show")
            self._shown[node] = self._programme.run(node, argv)
        for node in self._hosts:
            self._tcp[node] = self._programme.add("read", node, "/proc/sys/net/ipv4/tcp_*")

    def _nodes_with_queues(self) -> list[str]:
        plan = self._trial.plan
        nodes = {queue.node for queue in plan.queues}
        nodes |= {end.node for end in plan.radio.ends} if plan.radio else set()
        if has_channels(plan.network):
            nodes.add(WIRES)
        return sorted(nodes)

    def check(self, answers: Answers) -> None:
        """Compare the configuration before the flows with the plan."""
        self._began_with = self._before.read(answers)
        verify(self._trial.plan, self._began_with)

    def write(self, folder: Path, answers: Answers) -> None:
        """Write both readings of the settings, and the counters."""
        readings = {"begin": self._began_with, "end": self._after.read(answers)}
        contents = {
            QDISCS_FILE: {
                node: json_files.parse(UNKNOWN_TO_TC.sub("", answers.output(number)[1]).encode())
                for node, number in self._shown.items()
            },
            COUNTERS_FILE: {
                node: counters(answers.files(number).values())
                for node, number in self._counted.items()
            },
            CONFIGURATION_FILE: {when: reading.texts for when, reading in readings.items()},
        }
        for name, content in contents.items():
            write_json(folder, name, content)

    def describe(self, record: Record, answers: Answers) -> Record:
        """Add the kernel's version, TCP's settings and the queues."""
        version = (text.strip() for text in answers.files(self._version).values())
        return replace(
            record,
            kernel=" ".join(version),
            sysctls={node: _settings(answers.files(number)) for node, number in self._tcp.items()},
            queues=tuple(map(_queue_record, self._trial.plan.queues)),
        )


def _settings(files: dict[str, str]) -> dict[str, str]:
    return {f"net.ipv4.{path.rpartition('/')[2]}": text.strip() for path, text in files.items()}


def _queue_record(plan: QueuePlan) -> QueueRecord:
    queue, limit = plan.hop.queue, plan.hop.full
    return QueueRecord(
        node=plan.node,
        interface=plan.interface,
        rate_mbit=plan.hop.rate_mbit,
        burst_bytes=burst_bytes(plan.hop),
        most_at_once=plan.hop.direction.aggregate_packets,
        discipline=queue.discipline,
        limit=in_own_unit(queue, limit),
        unit=DISCIPLINES[queue.discipline].counts,
        ecn=queue.ecn,
        sampled=plan.sampled,
    )
