"""The network read back from the kernel, before a packet is sent, and compared with the plan."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from testbed.errors import TestbedError
from testbed.plan.host_settings import Parameter, RoutePlan
from testbed.plan.plan import Plan
from testbed.plan.traffic_control import TcObject
from testbed.trial.parts.snapshot import (
    ConfigurationReading,
    InterfaceReport,
    differences,
    route_metrics,
)

NOT_KEPT = "the kernel or tc cannot keep this number, or something else has changed it"
# linux/rtnetlink.h: RTAX_…
ROUTE_METRICS = MappingProxyType(
    {"window": 3, "rto_min": 13, "initcwnd": 11, "initrwnd": 14, "quickack": 15, "congctl": 16}
)

RTAX_LOCK = 1


def verify(plan: Plan, found: ConfigurationReading) -> None:
    """Compare everything with the plan; the first difference raises."""
    for node, settings in plan.sysctls:
        for name, value in settings:
            text = found.sysctls[node, name]
            if text.split() != value.split():
                raise TestbedError(f"{node}: {name} is {text!r}, not {value!r}")
    for parameter in plan.parameters:
        _verify_parameter(parameter, found.parameters.get(parameter.file, ""))
    for route in plan.routes:
        _verify_route(route, found.nodes[route.node].routes.get(route.peer, []))
    for wanted in plan.tc_objects:
        _verify_object(wanted, found.nodes[wanted.node].interfaces[wanted.interface])
    for queue in plan.queues:
        joined = found.nodes[queue.node].interfaces[queue.interface].segments
        if joined != 1:
            raise TestbedError(
                f"{queue.node}: {queue.interface}: TCP may hand it {joined} segments as one "
                "packet, not 1"
            )
    for (node, interface), on in found.offloads.items():
        if on:
            raise TestbedError(
                f"{node}: {interface} still has {', '.join(on)} on: queues would count in 64 KB"
            )


def _verify_parameter(parameter: Parameter, found: str) -> None:
    if found != str(parameter.value):
        raise TestbedError(
            f"{parameter.control}: {parameter.name} is {found}, not {parameter.value}",
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
    for found in report.filters if wanted.is_filter else reports:
        handle = found.parent if wanted.is_filter else found.handle
        if (handle, found.kind) == (wanted.handle.number, wanted.kind):
            for wrong in differences(wanted.settings, found.options):
                raise TestbedError(f"{where}: {wanted.kind}'s {wrong}", NOT_KEPT)
            return
    there = ", ".join(str(found) for found in report.disciplines) or "nothing"
    raise TestbedError(f"{where}: no {wanted.kind} at {wanted.handle}, but {there}")
