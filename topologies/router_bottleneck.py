"""n senders, a router, a receiver: `sender1 … senderN – router – receiver`.

sudo mn --custom topologies/router_bottleneck.py --topo router_bottleneck,senders=4 --link tc
"""

from __future__ import annotations

import sys
from typing import Any

from mininet.topo import Topo

sys.path.append(".")  # `mn --custom` runs this text without its path: from the project's root
from topologies.router import Router


class RouterBottleneck(Topo):
    """Senders that reach one receiver through one slow router."""

    def build(
        self, senders: int = 1, rate_mbit: float = 1, delay_ms: float = 0, queue_packets: int = 66
    ) -> None:
        """Lay out the nodes; rate, delay and queue act with `--link tc` only."""
        shaped: dict[str, Any] = {
            "bw": rate_mbit,
            "delay": f"{delay_ms}ms",
            "max_queue_size": queue_packets,
        }
        router = self.addNode("router", cls=Router, ip="10.0.0.1/24")
        receiver = self.addHost("receiver", ip="10.0.0.2/24", defaultRoute="via 10.0.0.1")
        self.addLink(router, receiver, **shaped)
        for number in range(1, senders + 1):
            gateway = f"10.0.{number}.1"
            sender = self.addHost(
                f"sender{number}", ip=f"10.0.{number}.2/24", defaultRoute=f"via {gateway}"
            )
            self.addLink(sender, router, params2={"ip": f"{gateway}/24"})


topos = {"router_bottleneck": RouterBottleneck}
