"""Static routing: a backup route that takes over when a link breaks.

    sudo python3 routing.py            or, without root: testbed mininet routing.py

    h1 ── r1 ─────── r2 ── h2
            └── r3 ──┘

Each router has two routes to the other side: the direct one, and one over r3 with a worse metric.
When the direct link's ends go down, the kernel removes their routes, and the others are used. The
TTL that arrives tells over how many routers a packet came.
"""

from __future__ import annotations

import time
from pathlib import Path

from mininet.net import Mininet

net = Mininet(controller=None)
h1, h2, r1, r2, r3 = (net.addHost(name, ip=None) for name in ("h1", "h2", "r1", "r2", "r3"))
for number, (a, b) in enumerate(((h1, r1), (h2, r2), (r1, r2), (r1, r3), (r3, r2)), 1):
    ends = {"ip": f"10.0.{number}.1/24"}, {"ip": f"10.0.{number}.2/24"}
    net.addLink(a, b, params1=ends[0], params2=ends[1])
net.start()
for router in (r1, r2, r3):
    router.cmd("sysctl -w net.ipv4.ip_forward=1")
for node, route in (
    (h1, "default via 10.0.1.2"),
    (h2, "default via 10.0.2.2"),
    (r1, "10.0.2.0/24 via 10.0.3.2 metric 10"),
    (r1, "10.0.2.0/24 via 10.0.4.2 metric 20"),
    (r2, "10.0.1.0/24 via 10.0.3.1 metric 10"),
    (r2, "10.0.1.0/24 via 10.0.5.1 metric 20"),
    (r3, "10.0.1.0/24 via 10.0.4.1"),
    (r3, "10.0.2.0/24 via 10.0.5.2"),
):
    print(node.cmd(f"ip route add {route}"), end="")
with Path("ping.txt").open("w") as output:
    ping = h1.popen("ping -D -i 0.1 -c 100 10.0.2.1", stdout=output)
    time.sleep(5.05)
    r1.cmd("ip link set r1-eth1 down")
    time.sleep(0.5)  # no routing protocol tells r2, which notices when its own end is down
    r2.cmd("ip link set r2-eth1 down")
    ping.wait()
lines = Path("ping.txt").read_text().splitlines()
ttls = [line.split("ttl=")[1].split()[0] for line in lines if "ttl=" in line]
print(f"TTL before {ttls[0]}, after {ttls[-1]}; {100 - len(ttls)} of 100 lost")
print(r1.cmd("ip route"), end="")
net.stop()
