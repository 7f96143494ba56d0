"""A home at the end of a line: `server – isp – ap – station`.

sudo mn --custom topologies/access_link.py --topo access_link --link tc --test pingall
"""

from __future__ import annotations

import sys

from mininet.topo import Topo

sys.path.append(".")  # `mn --custom` runs this text without its path: from the project's root
from topologies.router import Router


class AccessLink(Topo):
    """A station, its access point, the line to its provider, and a server behind that."""

    def build(
        self,
        down_mbit: float = 1.024,
        up_mbit: float = 0.512,
        delay_ms: float = 10,
        queue_packets: int = 32,
    ) -> None:
        """Lay out the nodes; rates, delay and queue act with `--link tc` only."""
        shaped = {"delay": f"{delay_ms}ms", "max_queue_size": queue_packets}
        isp = self.addNode(
            "isp", cls=Router, ip="10.0.0.1/24", routes=[("10.2.0.0/16", "10.0.0.2")]
        )
        ap = self.addNode("ap", cls=Router, ip="10.0.0.2/24", routes=[("10.1.0.0/16", "10.0.0.1")])
        server = self.addHost("server", ip="10.1.1.2/24", defaultRoute="via 10.1.1.1")
        station = self.addHost("station", ip="10.2.1.2/24", defaultRoute="via 10.2.1.1")
        self.addLink(server, isp, params2={"ip": "10.1.1.1/24"})
        self.addLink(
            isp,
            ap,
            params1={"bw": down_mbit, **shaped},
            params2={"bw": up_mbit, **shaped},
        )
        self.addLink(ap, station, params1={"ip": "10.2.1.1/24"})


topos = {"access_link": AccessLink}
