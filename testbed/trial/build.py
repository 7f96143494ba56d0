"""The Mininet network: built from the plan, and taken down however the trial ends.

Mininet manages the nodes and their namespaces; the plan's commands do everything else, and their
exit statuses are checked. Mininet itself would type commands into a shell in each node, which is
slow, and would ignore failures.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from testbed.errors import TestbedError
from testbed.machine.netns import inside, switch_offloads_off, write_setting
from testbed.machine.process import CommandLog, Place, end, run, start_held
from testbed.plan.commands import Command
from testbed.plan.host_settings import Parameter
from testbed.plan.plan import NO_OFFLOADS, Plan
from testbed.trial.parts.snapshot import sysctl_file

BATCHES = {"ip": ("ip", "-batch", "-"), "tc": ("tc", "-batch", "-")}


class LabNode(Node):  # type: ignore[misc]
    """A Mininet node that is configured by the plan alone, and so needs no shell."""

    isSetup = True  # otherwise Mininet looks for programs that are not needed

    def startShell(self, mnopts: str | None = None) -> None:
        """Create the namespace, held open by a process that ends when this one does."""
        # the name as Mininet writes it, so that `ps` and Mininet's `m` find the node
        self.shell = start_held(("mnexec", "-np", "cat", "-", f"mininet:{self.name}"))
        assert self.shell.stdout
        self.shell.stdout.readline()  # -p: it prints its process id once it is in its namespace
        self.pid = self.shell.pid

    def config(self, **params: Any) -> dict[str, Any]:
        """Do nothing: the plan's commands set addresses and routes."""
        return {}


class LabIntf(Intf):  # type: ignore[misc]
    """An interface that is configured by the plan alone."""

    def config(self, **params: Any) -> dict[str, Any]:
        """Do nothing: the plan's commands set addresses and routes."""
        return {}


class LabLink(Link):  # type: ignore[misc]
    """A veth pair, which one command creates together with all others."""

    @classmethod
    def makeIntfPair(cls, *_names: Any, **_options: Any) -> None:
        """Do nothing: lay_cables() creates all pairs."""


@contextlib.contextmanager
def cabled(plan: Plan, log: CommandLog) -> Iterator[Mapping[str, Place]]:
    """Create a plan's nodes and veth pairs for the duration of the block; yields places by node."""
    Mininet.inited = True  # init() would raise limits and change sysctls of the host
    mininet = Mininet(build=False, controller=None, waitConnected=False)
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
        places = {node.name: Place(node.name, node.pid, log) for node in mininet.hosts}
        lay_cables(plan, places, log)
        yield places
    finally:
        _take_down(mininet)


def _take_down(mininet: Mininet) -> None:
    """End the nodes: a namespace and its veth pairs vanish with its last process."""
    for node in mininet.hosts:
        end(node.shell, signal.SIGKILL)


def lay_cables(plan: Plan, places: Mapping[str, Place], log: CommandLog) -> None:
    """Create all veth pairs, with each end in its node from the start."""
    lines = [
        f"link add name {v.name1} address {v.mac1} netns {places[v.node1].pid} "
        f"type veth peer name {v.name2} address {v.mac2} netns {places[v.node2].pid}"
        for v in plan.veths
    ]
    run(BATCHES["ip"], place=Place(log=log), stdin="\n".join(lines) + "\n")


def apply(plan: Plan, places: Mapping[str, Place]) -> None:
    """Run the plan's commands; consecutive commands of one tool in one node share a process."""
    for node, settings in plan.sysctls:
        _write_sysctls(places[node], settings)
    for parameter in plan.parameters:
        _write_parameter(parameter)
    for (node, tool), group in itertools.groupby(plan.setup, lambda c: (c.node, c.argv[0])):
        _run_group(places[node], tool, list(group))


def _write_sysctls(place: Place, settings: Sequence[tuple[str, str]]) -> None:
    with inside(place.pid):
        for name, value in settings:
            argv = ("sysctl", "-w", f"{name}={value}")
            try:
                write_setting(sysctl_file(name), value)
            except OSError as error:
                place.note(argv, "", "failed", str(error))
                raise TestbedError(
                    f"{place.name}: cannot set {name} to {value!r}: {error.strerror}"
                ) from error
            place.note(argv, "", "0", "")


def _write_parameter(parameter: Parameter) -> None:
    """Set a module parameter, which applies to the whole kernel; the engine restores it."""
    try:
        write_setting(Path(parameter.file), str(parameter.value))
    except OSError as error:
        raise TestbedError(
            f"{parameter.control}: cannot set {parameter.name} to {parameter.value}: "
            f"{error.strerror}"
        ) from error


def _run_group(place: Place, tool: str, commands: list[Command]) -> None:
    if tool == "ethtool":
        _switch_offloads_off(place, commands)
        return
    lines = [" ".join(command.argv[1:]) for command in commands]
    run(BATCHES[tool], place=place, stdin="\n".join(lines) + "\n")


def _switch_offloads_off(place: Place, commands: Sequence[Command]) -> None:
    """Use ioctl instead of ethtool, whose processes would take a tenth of a short trial."""
    with inside(place.pid):
        for command in commands:
            _, _, interface, *words = command.argv
            assert tuple(words) == NO_OFFLOADS
            try:
                switch_offloads_off(interface)
            except OSError as error:
                place.note(command.argv, "", "failed", str(error))
                raise TestbedError(
                    f"{place.name}: cannot switch off the offloads of {interface}: {error.strerror}"
                ) from error
            place.note(command.argv, "", "0", "")
