"""The network read back from the kernel and compared with the plan, before a packet is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from testbed.errors import TestbedError
from testbed.machine.netns import inside, offloads_on, read_setting
from testbed.machine.process import Place, run
from testbed.plan.host_settings import RoutePlan
from testbed.plan.plan import Plan
from testbed.plan.traffic_control import QueuePlan, TcObject
from testbed.trial.parts.snapshot import (
    InterfaceReport,
    differences,
    interface_reports,
    sysctl_file,
)

Item = TypeVar("Item", RoutePlan, QueuePlan, TcObject)

REPORTED_AS = {"congctl": "congestion"}  # attributes that `ip -json` names in another way
NOT_KEPT = "the kernel or tc cannot keep this number, or something else has changed it"


def verify(plan: Plan, places: Mapping[str, Place]) -> None:
    """Read everything back from the kernel; the first difference ends the trial."""
    for node, settings in plan.sysctls:
        _verify_sysctls(places[node], settings)
    verify_parameters(plan)
    for node, routes in _by_node(plan.routes).items():
        _verify_routes(places[node], routes)
    queues = _by_node(plan.queues)
    for node, objects in _by_node(plan.tc_objects).items():
        found = interface_reports(places[node].pid)
        for each in objects:
            _verify_object(each, found[each.interface])
        for queue in queues.get(node, ()):
            _verify_segments(queue, found[queue.interface].segments)
    _verify_offloads(plan, places)


def _by_node(
    items: Iterable[Item],
) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.node, []).append(item)
    return found


def _verify_sysctls(place: Place, wanted: Sequence[tuple[str, str]]) -> None:
    with inside(place.pid):
        for name, value in wanted:
            found = read_setting(sysctl_file(name))
            if found.split() != value.split():
                raise TestbedError(f"{place.name}: {name} is {found.strip()!r}, not {value!r}")


def verify_parameters(plan: Plan) -> None:
    """Check the congestion controls' module parameters against the plan."""
    for parameter in plan.parameters:
        found = read_setting(Path(parameter.file)).strip()
        if found != str(parameter.value):
            raise TestbedError(
                f"{parameter.control}: {parameter.name} is {found}, not {parameter.value}",
                "it is the whole kernel's: is something else changing it?",
            )


def _verify_routes(place: Place, wanted: list[RoutePlan]) -> None:
    found = json.loads(run(("ip", "-json", "route", "show"), place=place).stdout)
    for route in wanted:
        metrics: dict[str, int | str] = {}
        for each in found:
            if each["dst"] == route.peer:
                metrics |= {key: value for part in each["metrics"] for key, value in part.items()}
        planned = {REPORTED_AS.get(name, name): value for name, value in route.attributes}
        if metrics != planned:
            raise TestbedError(
                f"{place.name}: the route to {route.peer} has {metrics}, not {planned}"
            )


def _verify_object(wanted: TcObject, report: InterfaceReport) -> None:
    """Check that a discipline or class exists with exactly the planned parameters."""
    where = f"{wanted.node}: {wanted.interface}"
    for found in report.classes if wanted.is_class else report.disciplines:
        if (found.handle, found.kind) == (wanted.handle.number, wanted.kind):
            for wrong in differences(wanted.settings, found.options):
                raise TestbedError(f"{where}: {wanted.kind}'s {wrong}", NOT_KEPT)
            return
    there = ", ".join(str(found) for found in report.disciplines) or "nothing"
    raise TestbedError(f"{where}: no {wanted.kind} at {wanted.handle}, but {there}")


def _verify_segments(queue: QueuePlan, joined: int) -> None:
    if joined != 1:
        raise TestbedError(
            f"{queue.node}: {queue.interface}: TCP may hand it {joined} segments as one packet, "
            "not 1"
        )


def _verify_offloads(plan: Plan, places: Mapping[str, Place]) -> None:
    for node, interface in plan.plain_interfaces:
        with inside(places[node].pid):
            on = offloads_on(interface)
        if on:
            raise TestbedError(
                f"{node}: {interface} still has {', '.join(on)} on: queues would count in 64 KB"
            )
