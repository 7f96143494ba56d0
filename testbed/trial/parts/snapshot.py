"""A reading of everything that is configured: written into a programme, read from its answers."""

from __future__ import annotations

import dataclasses
import functools
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.netlink import RTM_GETQDISC, TCA_KIND, TCA_OPTIONS, attribute, attributes
from testbed.plan.commands import LEAF
from testbed.plan.network import IPV6
from testbed.plan.plan import Plan, has_udp_programs
from testbed.plan.traffic_control import POLICE_OPTIONS, POLICE_PARAMETERS, POLICE_RATE64
from testbed.runner.programme import Answers, Programme
from testbed.scenario.discipline import Field, Setting

RTM_GETLINK, RTM_GETROUTE, RTM_GETTCLASS, RTM_GETTFILTER = 18, 26, 42, 46
IFLA_IFNAME, IFLA_MTU, IFLA_GSO_MAX_SEGS = 3, 4, 40
RTA_DST, RTA_METRICS, RTA_CACHEINFO = 1, 8, 12
_TC_MESSAGE = struct.Struct("=B3xiIII")  # family, interface, handle, parent, info
_LINK_MESSAGE_BYTES = 16
_ROUTE_MESSAGE_BYTES = 12
_ROUTE_FLAGS = 8  # where they stand in the message
RTNH_F_LINKDOWN = 16
OFFLOADS = (
    "tso",
    "gso",
    "gro",
    "tx-udp-segmentation",
)  # the bits of the runner's answer, from the lowest


@dataclass(frozen=True)
class TcReport:
    """A discipline, class or filter as reported by the kernel, with its options as raw bytes."""

    kind: str
    handle: int
    parent: int
    options: bytes

    def __str__(self) -> str:
        text = f"{self.kind} {self.handle:08x} in {self.parent:08x} {self.options.hex()}"
        return text.rstrip()


@dataclass
class InterfaceReport:
    """An interface: its queues, its MTU, and how many segments TCP may merge (GSO)."""

    disciplines: list[TcReport]
    classes: list[TcReport]
    filters: list[TcReport]  # of policers
    mtu: int
    segments: int


@dataclass
class NodeReport:
    """A node's interfaces by name, and its routes by their targets, as the kernel's messages."""

    interfaces: dict[str, InterfaceReport]
    routes: dict[str, list[bytes]]


@dataclass(frozen=True)
class ConfigurationReading:
    """The configuration that the kernel reported."""

    sysctls: dict[tuple[str, str], str]  # node and name
    parameters: dict[str, str]  # by file
    nodes: dict[str, NodeReport]
    offloads: dict[tuple[str, str], list[str]]  # node and interface: those that are on
    names: dict[str, str]  # of parameters, by file

    @property
    def texts(self) -> dict[str, str]:
        """Return the settings by name; a queue's options as raw bytes."""
        by_setting = {f"{node}: sysctl {name}": text for (node, name), text in self.sysctls.items()}
        by_setting |= {self.names[file]: text for file, text in self.parameters.items()}
        for node, report in self.nodes.items():
            by_setting.update(_texts_of_node(node, report))
        for (node, interface), on in self.offloads.items():
            by_setting[f"{node}: offloads of {interface}"] = " ".join(on) or "off"
        return by_setting


def _texts_of_node(node: str, report: NodeReport) -> Iterator[tuple[str, str]]:
    for name, interface in report.interfaces.items():
        yield f"{node}: mtu of {name}", str(interface.mtu)
        yield f"{node}: segments at once of {name}", str(interface.segments)
        trees = {
            "qdiscs": interface.disciplines,
            "classes": interface.classes,
            "filters": interface.filters,
        }
        for what, reports in trees.items():
            if reports:
                yield f"{node}: {what} of {name}", "; ".join(sorted(map(str, reports)))
    for name, messages in report.routes.items():
        yield f"{node}: route to {name}", "; ".join(sorted(each.hex() for each in messages))


@functools.lru_cache(maxsize=4096)
def sysctl_file(name: str) -> str:
    """Return a sysctl's file below /proc; interface names here contain no dots."""
    return str(Path("/proc/sys", *name.split(".")))


class Snapshot:
    """The instructions that read everything that a trial depends on."""

    def __init__(self, plan: Plan, programme: Programme) -> None:
        self._plan = plan
        self._sysctls = [
            (node, programme.add("read", node, *(sysctl_file(name) for name, _ in settings)))
            for node, settings in plan.sysctls
        ]
        files = [parameter.file for parameter in plan.parameters]
        self._parameters = programme.add("read", "-", *files) if files else -1
        self._nodes = [(node, _Dumps(node, plan, programme)) for node in plan.nodes]
        interfaces: dict[str, list[str]] = {}
        for node, interface in plan.plain_interfaces:
            interfaces.setdefault(node, []).append(interface)
        what = "read-udp" if has_udp_programs(each.flow for each in plan.flows) else "read"
        self._offloads = [
            (node, names, programme.add("offloads", node, what, *names))
            for node, names in interfaces.items()
        ]

    def read(self, answers: Answers) -> ConfigurationReading:
        """Return what the kernel reported."""
        sysctls = {}
        for (node, number), (_, settings) in zip(self._sysctls, self._plan.sysctls, strict=True):
            files = answers.files(number)
            for name, _ in settings:
                sysctls[node, name] = " ".join(files.get(sysctl_file(name), "").split())
        parameters = answers.files(self._parameters)
        return ConfigurationReading(
            sysctls=sysctls,
            parameters={file: text.strip() for file, text in parameters.items()},
            nodes={node: dumps.read(answers) for node, dumps in self._nodes},
            offloads={
                (node, name): [what for bit, what in enumerate(OFFLOADS) if on & 1 << bit]
                for node, names, number in self._offloads
                for name, on in zip(names, answers.of(number), strict=True)
            },
            names={
                each.file: f"parameter {each.name} of {each.control}"
                for each in self._plan.parameters
            },
        )


class _Dumps:
    """The instructions that list a node's interfaces, queues and routes."""

    def __init__(self, node: str, plan: Plan, programme: Programme) -> None:
        def dump(kind: int, message: bytes, interface: str = "") -> int:
            return programme.add("dump", node, kind, message.hex(), interface)

        self._links = dump(RTM_GETLINK, bytes(_LINK_MESSAGE_BYTES))
        self._disciplines = dump(RTM_GETQDISC, _TC_MESSAGE.pack(0, 0, 0, 0, 0))
        shaped = dict.fromkeys(each.interface for each in plan.tc_objects if each.node == node)
        self._classes = [
            dump(RTM_GETTCLASS, _TC_MESSAGE.pack(0, 0, 0, 0, 0), name) for name in shaped
        ]
        filtered = [e.interface for e in plan.tc_objects if e.node == node and e.is_filter]
        self._filters = [
            dump(RTM_GETTFILTER, _TC_MESSAGE.pack(0, 0, 0, LEAF.number, 0), name)
            for name in filtered
        ]
        families = (socket.AF_INET, socket.AF_INET6)[: 2 if plan.network.graph.ip == IPV6 else 1]
        self._routes = [
            (family, dump(RTM_GETROUTE, struct.pack("=B11x", family))) for family in families
        ]

    def read(self, answers: Answers) -> NodeReport:
        """Return what the kernel listed."""
        interfaces, names = {}, {}
        for message in answers.messages(self._links):
            (index,) = struct.unpack_from("=4xi", message)
            parts = attributes(message, _LINK_MESSAGE_BYTES)
            names[index] = parts[IFLA_IFNAME].rstrip(b"\0").decode()
            (mtu,), (segments,) = (
                struct.unpack("=I", parts[each]) for each in (IFLA_MTU, IFLA_GSO_MAX_SEGS)
            )
            interfaces[names[index]] = InterfaceReport([], [], [], mtu, segments)
        for message in answers.messages(self._disciplines):
            index, report = tc_report(message)
            interfaces[names[index]].disciplines.append(report)
        for number in self._classes:
            for message in answers.messages(number):
                index, report = tc_report(message)
                # classes of the queue itself are flows that come and go
                if report.handle >> 16 != LEAF.major:
                    interfaces[names[index]].classes.append(report)
        for number in self._filters:
            for message in answers.messages(number):
                index, report = tc_report(message)
                if report.options:  # the others are of what holds the filter
                    parameters = _as_configured(report.options)
                    configured = dataclasses.replace(report, options=parameters)
                    interfaces[names[index]].filters.append(configured)
        routes: dict[str, list[bytes]] = {}
        for family, number in self._routes:
            for message in answers.messages(number):
                target = attributes(message, _ROUTE_MESSAGE_BYTES).get(RTA_DST)
                name = socket.inet_ntop(family, target) if target else "default"
                routes.setdefault(name, []).append(_as_set(message))
        return NodeReport(interfaces, routes)


def tc_report(message: bytes) -> tuple[int, TcReport]:
    """Return the index of the interface that a discipline or class belongs to, and its report."""
    _, interface, handle, parent, _ = _TC_MESSAGE.unpack_from(message)
    parts = attributes(message, _TC_MESSAGE.size)
    kind = parts[TCA_KIND].rstrip(b"\0").decode()
    return interface, TcReport(kind, handle, parent, parts.get(TCA_OPTIONS, b""))


def _as_configured(options: bytes) -> bytes:
    """Leave out what is state of a policer's filter, not configuration: its counts and times."""
    for kind in POLICE_OPTIONS:
        options = attributes(options).get(kind, b"")
    parameters = {POLICE_PARAMETERS[-1], POLICE_RATE64[-1]}
    kept = b"".join(attribute(k, v) for k, v in attributes(options).items() if k in parameters)
    for kind in reversed(POLICE_OPTIONS):
        kept = attribute(kind, kept)
    return kept


def _as_set(route: bytes) -> bytes:
    """Leave out what is state of a route, not configuration.

    RTNH_F_LINKDOWN lags on busy hosts; one of IPv6 says how often it was used.
    """
    (flags,) = struct.unpack_from("=I", route, _ROUTE_FLAGS)
    set_flags = struct.pack("=I", flags & ~RTNH_F_LINKDOWN)
    rest = route[_ROUTE_MESSAGE_BYTES:]
    if route[0] == socket.AF_INET6:
        parts = attributes(route, _ROUTE_MESSAGE_BYTES)
        rest = b"".join(attribute(k, value) for k, value in parts.items() if k != RTA_CACHEINFO)
    return route[:_ROUTE_FLAGS] + set_flags + rest


def route_metrics(message: bytes) -> dict[int, bytes]:
    """Return the metrics of a route by their numbers in linux/rtnetlink.h (RTAX_…)."""
    return attributes(attributes(message, _ROUTE_MESSAGE_BYTES).get(RTA_METRICS, b""))


def differences(wanted: Iterable[Setting], options: bytes) -> Iterator[str]:
    """Describe every number that the kernel reports differently from the plan."""
    for setting in wanted:
        numbers = (read_field(field, options) for field in setting.at)
        any_number = next((number for number in numbers if number is not None), None)
        if difference := setting.difference(any_number):
            yield difference


def read_field(field: Field, options: bytes) -> int | None:
    """Return a number in a discipline's options; None if the kernel does not report it."""
    data: bytes | None = options
    for depth, kind in enumerate(field.path):
        data = attributes(data or b"", 0 if depth else field.head).get(kind)
    if data is None or len(data) < field.offset + struct.calcsize(f"={field.form}"):
        return None
    (number,) = struct.unpack_from(f"={field.form}", data, field.offset)
    return int(number) & field.mask


def counters(files: Iterable[str]) -> dict[str, int]:
    """Return a node's counters: a line `TcpExt: names…` is followed by `TcpExt: numbers…`."""
    totals = {}
    for text in files:
        lines = text.splitlines()
        for names, numbers in zip(lines[::2], lines[1::2], strict=True):
            prefix = names.partition(":")[0]
            pairs = zip(names.split()[1:], numbers.split()[1:], strict=True)
            totals.update({f"{prefix}{name}": int(number) for name, number in pairs})
    return totals
