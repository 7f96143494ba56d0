"""The Mininet network of a trial on the host: its nodes, and links that are known but not made.

Mininet manages the nodes and their namespaces; the trial's programme does everything else. Mininet
itself would type commands into a shell in each node, which is slow, and would ignore failures.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from testbed.machine.process import end, start_held
from testbed.plan.plan import Plan


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
        """Do nothing: the programme creates all pairs."""


@contextlib.contextmanager
def mininet_nodes(plan: Plan) -> Iterator[dict[str, str]]:
    """Create a plan's nodes for the duration of the block; yields their namespaces by name."""
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
        yield {node.name: f"/proc/{node.pid}/ns/net" for node in mininet.hosts}
    finally:
        _take_down(mininet)


def _take_down(mininet: Mininet) -> None:
    """End the nodes: a namespace and its veth pairs vanish with its last process."""
    for node in mininet.hosts:
        end(node.shell, signal.SIGKILL)
