"""The network read back from the kernel and held against the plan, before a packet is sent."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.machine.ethtool import offloads_on
from testbed.machine.netns import inside
from testbed.machine.process import Place, run
from testbed.plan.delay_links import lossy_ends
from testbed.plan.host_settings import RoutePlan
from testbed.plan.plan import Plan, QueuePlan
from testbed.scenario import queues
from testbed.scenario.losses import GilbertElliott
from testbed.store import LEAF_HANDLE, WIRES
from testbed.trial.parts.snapshot import htb_rates, segments_at_once, sysctl_file

HTB_STEP = 8  # bit/s: it counts whole bytes


def verify(plan: Plan, places: Mapping[str, Place]) -> None:
    """Read everything back from the kernel; the first mismatch ends the trial."""
    for node, settings in plan.sysctls:
        _verify_sysctls(places[node], settings)
    verify_parameters(plan)
    routes: dict[str, list[RoutePlan]] = {}
    for route in plan.routes:
        routes.setdefault(route.node, []).append(route)
    for node, wanted in routes.items():
        _verify_routes(places[node], wanted)
    by_node: dict[str, list[QueuePlan]] = {}
    for queue in plan.queues:
        by_node.setdefault(queue.node, []).append(queue)
    for node, each in by_node.items():
        _verify_queues(places[node], each)
    if plan.radio:
        for side in plan.radio.ends:
            _verify_radio_queue(places[side.node], side.name, plan.radio.packets)
    if channels := dict(lossy_ends(plan.network)):
        _verify_channels(places[WIRES], channels)
    for node, interface in plan.plain_interfaces:
        with inside(places[node].pid):
            on = offloads_on(interface)
        if on:
            raise TestbedError(
                f"{node}: {interface} still has {', '.join(on)} on: queues would count in 64 KB"
            )


def _verify_sysctls(place: Place, wanted: Sequence[tuple[str, str]]) -> None:
    with inside(place.pid):
        for name, value in wanted:
            found = sysctl_file(name).read_text()
            if found.split() != value.split():
                raise TestbedError(f"{place.name}: {name} is {found.strip()!r}, not {value!r}")


def verify_parameters(plan: Plan) -> None:
    """The controls' own settings are what they should be: nobody else has changed them."""
    for parameter in plan.parameters:
        found = Path(parameter.file).read_text().strip()
        if found != str(parameter.value):
            raise TestbedError(
                f"{parameter.control}: {parameter.name} is {found}, not {parameter.value}",
                "it is the whole kernel's: is something else changing it?",
            )


def _verify_routes(place: Place, wanted: list[RoutePlan]) -> None:
    found = json.loads(run(("ip", "-json", "route", "show"), place=place).stdout)
    for route in wanted:
        metrics: dict[str, int] = {}
        for each in found:
            if each["dst"] == route.peer:
                metrics |= {key: value for part in each["metrics"] for key, value in part.items()}
        if metrics != dict(route.attributes):
            raise TestbedError(
                f"{place.name}: the route to {route.peer} has {metrics}, "
                f"not {dict(route.attributes)}"
            )


def _verify_queues(place: Place, wanted: list[QueuePlan]) -> None:
    found = json.loads(run(("tc", "-json", "qdisc", "show"), place=place).stdout)
    rates, segments = htb_rates(place.pid), segments_at_once(place.pid)
    for plan in wanted:
        leaf = [q for q in found if q.get("dev") == plan.interface and q["handle"] == LEAF_HANDLE]
        where = f"{place.name}: {plan.interface}"
        if not leaf or leaf[0]["kind"] != plan.shaper.queue.discipline:
            raise TestbedError(f"{where}: no {plan.shaper.queue.discipline} below the htb: {leaf}")
        _verify_limit(where, plan, leaf[0].get("options", {}))
        rate, asked = rates.get(plan.interface, 0), plan.shaper.rate_mbit * 1e6
        if abs(rate - asked) > HTB_STEP:
            raise TestbedError(f"{where}: htb's rate is {rate:g} bit/s, not {asked:g}")
        if (joined := segments.get(plan.interface)) != 1:
            raise TestbedError(f"{where}: TCP may hand it {joined} segments as one packet, not 1")


def _verify_radio_queue(place: Place, interface: str, packets: int) -> None:
    found = json.loads(run(("tc", "-json", "qdisc", "show", "dev", interface), place=place).stdout)
    limit = found[0].get("options", {}).get("limit")
    if found[0]["kind"] != "pfifo" or _number(limit) != packets:
        raise TestbedError(f"{place.name}: {interface}: no pfifo of the asked length: {found}")


def _number(limit: object) -> int | None:
    """tc prints some limits with their unit."""
    return int(re.sub(r"\D", "", str(limit)) or 0) if limit is not None else None


def _verify_channels(place: Place, wanted: Mapping[str, GilbertElliott]) -> None:
    found = json.loads(run(("tc", "-json", "qdisc", "show"), place=place).stdout)
    models = {q["dev"]: q["options"].get("loss-gemodel") for q in found if q["kind"] == "netem"}
    for interface, channel in wanted.items():
        model = models.get(interface) or {}
        chances = dataclasses.astuple(channel)
        seen = tuple(float(model.get(name, math.nan)) for name in ("p", "r", "1-h", "1-k"))
        if not all(abs(one - other) < 1e-6 for one, other in zip(seen, chances, strict=True)):
            raise TestbedError(f"{place.name}: {interface} loses by {model}, not by {channel}")


def _verify_limit(where: str, plan: QueuePlan, options: Mapping[str, Any]) -> None:
    row = queues.DISCIPLINES[plan.shaper.queue.discipline]
    limit = plan.shaper.limit
    wanted = limit.bytes if row.counts == "bytes" else limit.packets
    found = options.get("limit", options.get("memlimit"))
    if _number(found) != wanted:
        raise TestbedError(f"{where}: {row.name}'s limit is {found}, not {wanted}")
    if row.ecn and row.name not in queues.ALWAYS_ECN:
        marks = bool(options.get("ecn", False))
        if marks != plan.shaper.queue.ecn:
            raise TestbedError(f"{where}: {row.name}'s ecn is {marks}, not {plan.shaper.queue.ecn}")
