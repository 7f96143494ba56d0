"""The Mininet network: built from the plan, verified against it, taken down whatever happens.

Mininet keeps the nodes, their namespaces and the virtual cables. All that is done to
them are the plan's commands, with their exit statuses checked: Mininet's own way types
them into a shell in each node, which is slow, and ignores what fails.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from testbed import queues
from testbed.air import Air
from testbed.commands import Command
from testbed.errors import TestbedError
from testbed.losses import GilbertElliott
from testbed.netns import inside
from testbed.offloads import offloads_on
from testbed.plan import Parameter, Plan, QueuePlan, RoutePlan
from testbed.process import CommandLog, Place, end, run, start_held
from testbed.wires import WIRES, lossy_ends

BATCHES = {"ip": ("ip", "-batch", "-"), "tc": ("tc", "-batch", "-")}


class LabNode(Node):  # type: ignore[misc]
    """A Mininet node that is configured by the plan alone, and so needs no shell."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Make the namespace; a process that waits for our end holds it."""
        # the name as Mininet writes it, so that `ps` and Mininet's `m` find the node
        self.shell = start_held(("mnexec", "-np", "cat", "-", f"mininet:{self.name}"))
        assert self.shell.stdout
        self.shell.stdout.readline()  # -p: tells of itself once it is in its namespace
        self.pid = self.shell.pid

    def config(self, **params: Any) -> dict[str, Any]:
        """Nothing: addresses and routes are the plan's commands."""
        return {}


class LabIntf(Intf):  # type: ignore[misc]
    """An interface that is configured by the plan alone."""

    def config(self, **params: Any) -> dict[str, Any]:
        """Nothing, as above."""
        return {}


class LabLink(Link):  # type: ignore[misc]
    """A cable that is laid with all others, by one command."""

    @classmethod
    def makeIntfPair(cls, *_names: Any, **_options: Any) -> None:
        """Nothing: see lay_cables()."""


class Lab:
    """The running network: a place to run commands in for every node."""

    def __init__(self, mininet: Mininet, log: CommandLog) -> None:
        self._mininet = mininet
        self.air: Air | None = None  # of the radio link
        self.places: dict[str, Place] = {
            node.name: Place(node.name, node.pid, log) for node in mininet.hosts
        }

    def place(self, node: str) -> Place:
        """Where commands of this node run."""
        return self.places[node]


@contextlib.contextmanager
def network(plan: Plan, log: CommandLog, folder: Path) -> Iterator[Lab]:
    """The network of a plan, up and verified; gone when the block is left."""
    Mininet.inited = True  # init() would raise limits and change sysctls of the host
    mininet = Mininet(build=False, controller=None, waitConnected=False)
    lab = None
    try:
        for name in plan.nodes:
            mininet.addHost(name, cls=LabNode)
        for veth in plan.veths:
            mininet.addLink(
                veth.node1,
                veth.node2,
                cls=LabLink,
                intf=LabIntf,
                intfName1=veth.name1,
                intfName2=veth.name2,
                addr1=veth.mac1,
                addr2=veth.mac2,
            )
        lab = Lab(mininet, log)
        lay_cables(plan, lab, log)
        if plan.radio:
            lab.air = Air(plan.radio, lab.places, folder)
            lab.air.place_radios()
        apply(plan, lab)
        if lab.air:
            lab.air.join()
        verify(plan, lab)
        yield lab
    finally:
        if lab and lab.air:
            lab.air.kill()
        _take_down(mininet)


def _take_down(mininet: Mininet) -> None:
    """End the nodes: with its last process a namespace goes, and its cables with it."""
    for node in mininet.hosts:
        end(node.shell, signal.SIGKILL)


def lay_cables(plan: Plan, lab: Lab, log: CommandLog) -> None:
    """Make all veth pairs, each end in its node from the start."""
    lines = [
        f"link add name {v.name1} address {v.mac1} netns {lab.place(v.node1).pid} "
        f"type veth peer name {v.name2} address {v.mac2} netns {lab.place(v.node2).pid}"
        for v in plan.veths
    ]
    run(BATCHES["ip"], place=Place(log=log), stdin="\n".join(lines) + "\n")


def apply(plan: Plan, lab: Lab) -> None:
    """Run the plan's commands; neighbours of one tool in one node share a process."""
    for node, settings in plan.sysctls:
        _write_sysctls(lab.place(node), settings)
    for parameter in plan.parameters:
        _write_parameter(parameter)
    for (node, tool), group in itertools.groupby(plan.setup, lambda c: (c.node, c.argv[0])):
        _run_group(lab.place(node), tool, list(group))


def _sysctl(name: str) -> Path:
    """Its file; names of interfaces have no dots here."""
    return Path("/proc/sys", *name.split("."))


def _write_sysctls(place: Place, settings: Sequence[tuple[str, str]]) -> None:
    with inside(place.pid):
        for name, value in settings:
            argv = ("sysctl", "-w", f"{name}={value}")
            try:
                _sysctl(name).write_text(value)
            except OSError as error:
                place.note(argv, "", "failed", str(error))
                raise TestbedError(
                    f"{place.name}: cannot set {name} to {value!r}: {error.strerror}"
                ) from error
            place.note(argv, "", "0", "")


def _write_parameter(parameter: Parameter) -> None:
    """It is the whole kernel's; the engine puts back what was there."""
    try:
        Path(parameter.file).write_text(str(parameter.value))
    except OSError as error:
        raise TestbedError(
            f"{parameter.control}: cannot set {parameter.name} to {parameter.value}: "
            f"{error.strerror}"
        ) from error


def _run_group(place: Place, tool: str, commands: list[Command]) -> None:
    if tool not in BATCHES:
        for command in commands:
            run(command.argv, place=place)
        return
    lines = [" ".join(command.argv[1:]) for command in commands]
    run(BATCHES[tool], place=place, stdin="\n".join(lines) + "\n")


def verify(plan: Plan, lab: Lab) -> None:
    """Read everything back from the kernel; the first mismatch ends the trial."""
    for node, settings in plan.sysctls:
        _verify_sysctls(lab.place(node), settings)
    verify_parameters(plan)
    routes: dict[str, list[RoutePlan]] = {}
    for route in plan.routes:
        routes.setdefault(route.node, []).append(route)
    for node, wanted in routes.items():
        _verify_routes(lab.place(node), wanted)
    by_node: dict[str, list[QueuePlan]] = {}
    for queue in plan.queues:
        by_node.setdefault(queue.node, []).append(queue)
    for node, each in by_node.items():
        _verify_queues(lab.place(node), each)
    if plan.radio:
        for side in plan.radio.ends:
            _verify_radio_queue(lab.place(side.node), side.name, plan.radio.packets)
    if channels := dict(lossy_ends(plan.network)):
        _verify_channels(lab.place(WIRES), channels)
    for node, interface in plan.plain_interfaces:
        with inside(lab.place(node).pid):
            on = offloads_on(interface)
        if on:
            raise TestbedError(
                f"{node}: {interface} still has {', '.join(on)} on: queues would count in 64 KB"
            )


def _verify_sysctls(place: Place, wanted: Sequence[tuple[str, str]]) -> None:
    with inside(place.pid):
        for name, value in wanted:
            found = _sysctl(name).read_text()
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
    for plan in wanted:
        leaf = [q for q in found if q.get("dev") == plan.interface and q["handle"] == "30:"]
        where = f"{place.name}: {plan.interface}"
        if not leaf or leaf[0]["kind"] != plan.shaper.queue.discipline:
            raise TestbedError(f"{where}: no {plan.shaper.queue.discipline} below the htb: {leaf}")
        _verify_limit(where, plan, leaf[0].get("options", {}))
        _verify_rate(place, plan)


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


def _verify_rate(place: Place, plan: QueuePlan) -> None:
    """tc prints an htb class for people only, its rate rounded to three digits or more."""
    text = run(("tc", "class", "show", "dev", plan.interface), place=place).stdout
    match = re.search(r"class htb 1:3 .*?\brate (\d+)([KMG]?)bit", text)
    found = int(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2]] if match else 0
    if abs(found - plan.shaper.rate_mbit * 1e6) > 1e-3 * plan.shaper.rate_mbit * 1e6:
        raise TestbedError(
            f"{place.name}: {plan.interface}: htb's rate is {found:g} bit/s, "
            f"not {plan.shaper.rate_mbit * 1e6:g}"
        )


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
