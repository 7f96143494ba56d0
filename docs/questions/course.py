"""A course's topology: two offices and a server, joined by a router, as `mn --custom` takes it."""

from __future__ import annotations

from typing import Any

from mininet.node import Node
from mininet.topo import Topo


class LinuxRouter(Node):
    """A node that forwards packets."""

    def config(self, **params: Any) -> None:
        """Switch forwarding on."""
        super().config(**params)
        self.cmd("sysctl net.ipv4.ip_forward=1")


class Offices(Topo):
    """Two offices with a host each, and a server behind the slow link."""

    def build(self) -> None:
        """Name nodes and links."""
        self.addNode("r0", cls=LinuxRouter, ip="10.0.1.1/24")
        for n, (name, options) in enumerate(
            {
                "office1": {"bw": 100, "delay": "2ms"},
                "office2": {"bw": 100, "delay": "20ms"},
                "server": {"bw": 10, "delay": "5ms", "max_queue_size": 50},
            }.items(),
            start=1,
        ):
            self.addHost(name, ip=f"10.0.{n}.100/24", defaultRoute=f"via 10.0.{n}.1")
            self.addLink(
                name,
                "r0",
                params1={"ip": f"10.0.{n}.100/24"},
                params2={"ip": f"10.0.{n}.1/24"},
                **options,
            )
