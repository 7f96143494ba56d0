"""The kernel's view of the network: its configuration and its counters.

The configuration is read before and after the flows: if anything changed in between (by a user or a
daemon), the trial is not the planned one. It is read by netlink, without a process: in the guest,
tc and ip would take more wall time than a short trial.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.netlink import NETLINK_ROUTE, RTM_GETQDISC, Netlink, attributes
from testbed.machine.netns import inside, offloads_on, read_setting
from testbed.machine.process import Place
from testbed.plan.commands import LEAF
from testbed.plan.plan import Plan
from testbed.scenario.discipline import Field, Setting

RTM_GETLINK, RTM_GETROUTE, RTM_GETTCLASS = 18, 26, 42
IFLA_IFNAME, IFLA_MTU, IFLA_GSO_MAX_SEGS = 3, 4, 40
RTA_DST = 1
TCA_KIND, TCA_OPTIONS = 1, 2
_TC_MESSAGE = struct.Struct("=B3xiIII")  # family, interface, handle, parent, info
_LINK_MESSAGE_BYTES = 16
_ROUTE_MESSAGE_BYTES = 12
_ROUTE_FLAGS = 8  # where they stand in the message
RTNH_F_LINKDOWN = 16


@dataclass(frozen=True)
class TcReport:
    """A discipline or class as reported by the kernel, with its options as raw bytes."""

    kind: str
    handle: int
    parent: int
    options: bytes

    def __str__(self) -> str:
        text = f"{self.kind} {self.handle:08x} in {self.parent:08x} {self.options.hex()}"
        return text.rstrip()


def sysctl_file(name: str) -> Path:
    """Return a sysctl's file below /proc; interface names here contain no dots."""
    return Path("/proc/sys", *name.split("."))


def configuration(plan: Plan, places: Mapping[str, Place]) -> dict[str, str]:
    """All settings that a trial depends on, by name; a queue's options as raw bytes."""
    found: dict[str, str] = {}
    for node, settings in plan.sysctls:
        with inside(places[node].pid):
            for name, _ in settings:
                text = read_setting(sysctl_file(name))
                found[f"{node}: sysctl {name}"] = " ".join(text.split())
    for parameter in plan.parameters:
        value = read_setting(Path(parameter.file)).strip()
        found[f"parameter {parameter.name} of {parameter.control}"] = value
    for node in plan.nodes:
        found.update(_of_node(node, places[node].pid))
    for node, interface in plan.plain_interfaces:
        with inside(places[node].pid):
            found[f"{node}: offloads of {interface}"] = " ".join(offloads_on(interface)) or "off"
    return found


def _of_node(node: str, pid: int | None) -> Iterator[tuple[str, str]]:
    """Return a node's interfaces with their queues, and its routes."""
    with contextlib.closing(Netlink(NETLINK_ROUTE, pid)) as netlink:
        for index, name, mtu, segments in _links(netlink):
            yield f"{node}: mtu of {name}", str(mtu)
            yield f"{node}: segments at once of {name}", str(segments)
            trees = (("qdiscs", RTM_GETQDISC), ("classes", RTM_GETTCLASS))
            for what, kind in trees:
                if tree := sorted(map(str, _traffic_control(netlink, kind, index))):
                    yield f"{node}: {what} of {name}", "; ".join(tree)
        request = struct.pack("=B11x", socket.AF_INET)
        routes: dict[str, list[str]] = {}
        for message in netlink.dump(RTM_GETROUTE, request):
            target = attributes(message, _ROUTE_MESSAGE_BYTES).get(RTA_DST)
            name = socket.inet_ntoa(target) if target else "default"
            routes.setdefault(name, []).append(_as_set(message).hex())
        for name, messages in routes.items():
            yield f"{node}: route to {name}", "; ".join(sorted(messages))


def _as_set(route: bytes) -> bytes:
    """Mask RTNH_F_LINKDOWN in a route: it is state, not configuration, and lags on busy hosts."""
    (flags,) = struct.unpack_from("=I", route, _ROUTE_FLAGS)
    set_flags = struct.pack("=I", flags & ~RTNH_F_LINKDOWN)
    return route[:_ROUTE_FLAGS] + set_flags + route[_ROUTE_MESSAGE_BYTES:]


def _links(netlink: Netlink) -> list[tuple[int, str, int, int]]:
    """Index, name, MTU and maximum segments per packet of every interface."""
    found = []
    for message in netlink.dump(RTM_GETLINK, bytes(_LINK_MESSAGE_BYTES)):
        (index,) = struct.unpack_from("=4xi", message)
        own = attributes(message, _LINK_MESSAGE_BYTES)
        name = own[IFLA_IFNAME].rstrip(b"\0").decode()
        (mtu,), (segments,) = (
            struct.unpack("=I", own[each]) for each in (IFLA_MTU, IFLA_GSO_MAX_SEGS)
        )
        found.append((index, name, mtu, segments))
    return found


def _traffic_control(netlink: Netlink, kind: int, index: int) -> Iterator[TcReport]:
    """Return the disciplines, or the classes, of one interface."""
    for message in netlink.dump(kind, _TC_MESSAGE.pack(0, index, 0, 0, 0)):
        _, interface, handle, parent, _ = _TC_MESSAGE.unpack_from(message)
        # a kernel may list all of them; classes of the queue itself are flows that come and go
        if interface == index and not (kind == RTM_GETTCLASS and handle >> 16 == LEAF.major):
            own = attributes(message, _TC_MESSAGE.size)
            name = own[TCA_KIND].rstrip(b"\0").decode()
            yield TcReport(name, handle, parent, own.get(TCA_OPTIONS, b""))


@dataclass(frozen=True)
class InterfaceReport:
    """An interface's disciplines and classes, and how many segments TCP may merge (GSO)."""

    disciplines: tuple[TcReport, ...]
    classes: tuple[TcReport, ...]
    segments: int


def interface_reports(pid: int | None) -> dict[str, InterfaceReport]:
    """All interfaces of a node, by name."""
    with contextlib.closing(Netlink(NETLINK_ROUTE, pid)) as netlink:
        return {
            name: InterfaceReport(
                tuple(_traffic_control(netlink, RTM_GETQDISC, index)),
                tuple(_traffic_control(netlink, RTM_GETTCLASS, index)),
                segments,
            )
            for index, name, _, segments in _links(netlink)
        }


def differences(wanted: Iterable[Setting], options: bytes) -> Iterator[str]:
    """Describe every number that the kernel reports differently from the plan."""
    for setting in wanted:
        numbers = (read_field(field, options) for field in setting.at)
        found = next((number for number in numbers if number is not None), None)
        if said := setting.difference(found):
            yield said


def read_field(field: Field, options: bytes) -> int | None:
    """Return a number in a discipline's options; None if the kernel does not report it."""
    data: bytes | None = options
    for depth, attribute in enumerate(field.path):
        data = attributes(data or b"", 0 if depth else field.head).get(attribute)
    if data is None or len(data) < field.offset + struct.calcsize(f"={field.form}"):
        return None
    (number,) = struct.unpack_from(f"={field.form}", data, field.offset)
    return int(number) & field.mask


def tcp_settings(pid: int | None) -> dict[str, str]:
    """All TCP sysctls of a node, for the trial's record."""
    with inside(pid):
        return {
            f"net.ipv4.{path.name}": _read(path)
            for path in sorted(Path("/proc/sys/net/ipv4").glob("tcp_*"))
        }


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):  # keys that may only be written
        return read_setting(path).strip()
    return ""


def counters(pid: int | None) -> dict[str, int]:
    """Return a node's counters: a line `TcpExt: names…` is followed by `TcpExt: numbers…`."""
    found = {}
    with inside(pid):
        for file in ("/proc/self/net/netstat", "/proc/self/net/snmp"):
            lines = Path(file).read_text().splitlines()
            for names, numbers in zip(lines[::2], lines[1::2], strict=True):
                prefix = names.partition(":")[0]
                pairs = zip(names.split()[1:], numbers.split()[1:], strict=True)
                found.update({f"{prefix}{name}": int(number) for name, number in pairs})
    return found
