"""A node that forwards packets, for plain Mininet."""

from __future__ import annotations

from typing import Any

from mininet.node import Node


class Router(Node):
    """A Linux router: forwarding on, and the static routes in its `routes` parameter."""

    def config(self, **params: Any) -> dict[str, Any]:
        """Switch on forwarding and add the routes; Mininet calls this once interfaces exist."""
        result: dict[str, Any] = super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")
        for destination, gateway in params.get("routes", ()):
            self.cmd(f"ip route add {destination} via {gateway}")
        return result
