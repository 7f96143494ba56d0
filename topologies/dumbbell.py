"""n pairs across one link: `sender1 … senderN – left – right – receiver1 … receiverN`.

sudo mn --custom topologies/dumbbell.py --topo dumbbell,pairs=2 --link tc --test pingall
"""

from __future__ import annotations

import sys
from typing import Any

from mininet.topo import Topo

sys.path.append(".")  # `mn --custom` runs this text without its path: from the project's root
from topologies.router import Router


class Dumbbell(Topo):
    """Pairs of hosts whose flows share the link between two routers."""

    def build(
        self, pairs: int = 2, rate_mbit: float = 10, delay_ms: float = 10, queue_packets: int = 10
    ) -> None:
        """Lay out the nodes; rate, delay and queue act with `--link tc` only."""
        shaped: dict[str, Any] = {
            "bw": rate_mbit,
            "delay": f"{delay_ms}ms",
            "max_queue_size": queue_packets,
        }
        left = self.addNode(
            "left", cls=Router, ip="10.0.0.1/24", routes=[("10.2.0.0/16", "10.0.0.2")]
        )
        right = self.addNode(
            "right", cls=Router, ip="10.0.0.2/24", routes=[("10.1.0.0/16", "10.0.0.1")]
        )
        self.addLink(left, right, **shaped)
        for number in range(1, pairs + 1):
            for side, router, net in (("sender", left, 1), ("receiver", right, 2)):
                gateway = f"10.{net}.{number}.1"
                host = self.addHost(
                    f"{side}{number}",
                    ip=f"10.{net}.{number}.2/24",
                    defaultRoute=f"via {gateway}",
                )
                self.addLink(host, router, params2={"ip": f"{gateway}/24"}, **shaped)


topos = {"dumbbell": Dumbbell}
