"""The kernel's settings before and after the flows, and its counters in between.

If anything changed in between (by a user or a daemon), the trial is not the planned one; nor is it
if the settings before are not those of the plan. The network is read back before a packet is sent.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from testbed.errors import TestbedError
from testbed.machine import json_files
from testbed.plan.delay_links import has_channels
from testbed.plan.host_settings import Parameter, RoutePlan, hosts
from testbed.plan.plan import Plan
from testbed.plan.traffic_control import QueuePlan, TcObject, burst_bytes
from testbed.runner.programme import Answers
from testbed.runner.recorded_netlink import TC
from testbed.scenario.queues import DISCIPLINES, in_own_unit
from testbed.store.names import CONFIGURATION_FILE, COUNTERS_FILE, DELAY_NODE, QDISCS_FILE, RETIRE_S
from testbed.store.records import QueueRecord, Record
from testbed.store.writing import write_json
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline
from testbed.trial.parts.snapshot import (
    ConfigurationReading,
    InterfaceReport,
    Snapshot,
    counters,
    differences,
    route_metrics,
)

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
            argv = (str(TC), "-json", "-s", "qdisc", "show")
            self._shown[node] = self._programme.run(node, argv)
        for node in self._hosts:
            self._tcp[node] = self._programme.add("read", node, "/proc/sys/net/ipv4/tcp_*")

    def _nodes_with_queues(self) -> list[str]:
        plan = self._trial.plan
        nodes = {queue.node for queue in plan.queues}
        nodes |= {end.node for end in plan.radio.ends} if plan.radio else set()
        if has_channels(plan.network):
            nodes.add(DELAY_NODE)
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


NOT_KEPT = "the kernel or tc cannot keep this number, or something else has changed it"
# linux/rtnetlink.h: RTAX_…
ROUTE_METRICS = MappingProxyType(
    {"window": 3, "rto_min": 13, "initcwnd": 11, "initrwnd": 14, "quickack": 15, "congctl": 16}
)

RTAX_LOCK = 1


def verify(plan: Plan, reading: ConfigurationReading) -> None:
    """Compare everything with the plan; the first difference raises."""
    for node, settings in plan.sysctls:
        for name, value in settings:
            text = reading.sysctls[node, name]
            if text.split() != value.split():
                raise TestbedError(f"{node}: {name} is {text!r}, not {value!r}")
    for parameter in plan.parameters:
        _verify_parameter(parameter, reading.parameters.get(parameter.file, ""))
    for route in plan.routes:
        _verify_route(route, reading.nodes[route.node].routes.get(route.peer, []))
    for wanted in plan.tc_objects:
        _verify_object(wanted, reading.nodes[wanted.node].interfaces[wanted.interface])
    for node, interface in plan.one_segment:
        joined = reading.nodes[node].interfaces[interface].segments
        if joined != 1:
            raise TestbedError(
                f"{node}: {interface}: TCP may hand it {joined} segments as one packet, not 1"
            )
    for (node, interface), on in reading.offloads.items():
        if on:
            raise TestbedError(
                f"{node}: {interface} still has {', '.join(on)} on: queues would count in 64 KB"
            )


def _verify_parameter(parameter: Parameter, value: str) -> None:
    if value != str(parameter.value):
        raise TestbedError(
            f"{parameter.control}: {parameter.name} is {value}, not {parameter.value}",
            "it is the whole kernel's: is something else changing it?",
        )


def _verify_route(route: RoutePlan, messages: list[bytes]) -> None:
    metrics: dict[int, bytes] = {}
    for message in messages:
        metrics |= route_metrics(message)
    metrics.pop(RTAX_LOCK, None)  # what `ip` gives with rto_min
    planned = {ROUTE_METRICS[name]: value for name, value in route.attributes}
    names = {number: name for name, number in ROUTE_METRICS.items()}
    shown: Mapping[str, int | str] = {
        names.get(number, str(number)): _metric(number, value) for number, value in metrics.items()
    }
    wanted = {names[number]: value for number, value in planned.items()}
    if shown != wanted:
        raise TestbedError(f"{route.node}: the route to {route.peer} has {shown}, not {wanted}")


def _metric(number: int, value: bytes) -> int | str:
    """Return a metric: a number, or the name of a congestion control."""
    if number == ROUTE_METRICS["congctl"]:
        return value.rstrip(b"\0").decode()
    return int(struct.unpack("=I", value)[0])


def _verify_object(wanted: TcObject, report: InterfaceReport) -> None:
    """Check that a discipline, class or filter exists with exactly the planned parameters."""
    where = f"{wanted.node}: {wanted.interface}"
    reports = report.classes if wanted.is_class else report.disciplines
    for actual in report.filters if wanted.is_filter else reports:
        handle = actual.parent if wanted.is_filter else actual.handle
        if (handle, actual.kind) == (wanted.handle.number, wanted.kind):
            for wrong in differences(wanted.settings, actual.options):
                raise TestbedError(f"{where}: {wanted.kind}'s {wrong}", NOT_KEPT)
            return
    there = ", ".join(str(actual) for actual in report.disciplines) or "nothing"
    raise TestbedError(f"{where}: no {wanted.kind} at {wanted.handle}, but {there}")
