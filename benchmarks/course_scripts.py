"""Short Mininet scripts in the style of courses, beside the laboratories of experiments/course.

`benchmarks.whole_programs --scripts` runs them. Each is a body behind SCRIPT_HEAD.
"""

from __future__ import annotations

from collections.abc import Mapping

SCRIPT_HEAD = """
import time
from functools import partial
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSBridge
from mininet.nodelib import LinuxBridge
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.topolib import TreeTopo

setLogLevel("output")

def pair(**link):
    net = Mininet(controller=None, link=TCLink)
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2, **link)
    net.start()
    return net, h1, h2
"""
COURSE_SCRIPTS: Mapping[str, str] = {
    "star": """
net = Mininet(SingleSwitchTopo(4), switch=OVSBridge, controller=None)
net.start()
net.pingAll()
net.stop()
""",
    "bridge": """
net = Mininet(SingleSwitchTopo(3), switch=LinuxBridge, controller=None)
net.start()
net.pingAll()
net.stop()
""",
    "linear": """
net = Mininet(LinearTopo(4))
net.start()
net.pingAll()
net.stop()
""",
    "tree": """
link = partial(TCLink, bw=10)
net = Mininet(TreeTopo(2), link=link, switch=OVSBridge, controller=None)
net.start()
print(net.iperf((net["h1"], net["h4"]), seconds=5))
net.stop()
""",
    "loss": """
net, h1, h2 = pair(bw=10, loss=10)
print(h1.cmd("ping -c 200 -i 0.1", h2.IP()))
net.stop()
""",
    "jitter": """
net, h1, h2 = pair(bw=10, delay="20ms", jitter="5ms")
print(h1.cmd("ping -c 50 -i 0.2", h2.IP()))
net.stop()
""",
    "web": """
net, h1, h2 = pair(bw=5, delay="10ms")
h2.cmd("head -c 2000000 /dev/urandom >page; python3 -m http.server 80 >/dev/null 2>&1 &")
time.sleep(30)  # http.server asks for its name, and there is nobody to answer
print(h1.cmd("curl -s -o copy -w %{time_total} http://" + h2.IP() + "/page"))
net.stop()
""",
    "router": """
net = Mininet(controller=None)
r = net.addHost("r", ip=None)
for n in (1, 2):
    h = net.addHost(f"h{n}", ip=f"10.0.{n}.2/24", defaultRoute=f"via 10.0.{n}.1")
    net.addLink(h, r, params2={"ip": f"10.0.{n}.1/24"})
net.start()
r.cmd("sysctl -w net.ipv4.ip_forward=1")
print(net["h1"].cmd("ping -c 3 10.0.2.2"))
net.stop()
""",
    "nat": """
net = Mininet(SingleSwitchTopo(2), switch=OVSBridge, controller=None)
net.addNAT().configDefault()
net.start()
print(net["h1"].cmd("ping -c 3", net["nat0"].IP()), net["nat0"].cmd("iptables -t nat -S"))
net.stop()
""",
    "udp": """
net, h1, h2 = pair(bw=4, max_queue_size=50)
h2.cmd("iperf -s -u -i 1 >server.txt &")
print(h1.cmd("iperf -u -b 6M -t 5 -c", h2.IP()))
net.stop()
""",
    "queue": """
net, h1, h2 = pair(bw=5, delay="20ms", max_queue_size=100)
h2.cmd("iperf -s >/dev/null &")
client = h1.popen(["iperf", "-t", "10", "-c", h2.IP()])
for _ in range(100):
    h1.cmd("tc -s qdisc show dev h1-eth0 >>queue.txt")
    time.sleep(0.1)
client.wait()
net.stop()
""",
    "window": """
net, h1, h2 = pair(bw=5, delay="20ms", max_queue_size=40)
h2.cmd("iperf -s >/dev/null &")
client = h1.popen(["iperf", "-t", "10", "-Z", "reno", "-c", h2.IP()])
windows = []
for _ in range(100):
    words = h1.cmd("ss -tin dst", h2.IP()).split()
    windows += [int(word[5:]) for word in words if word.startswith("cwnd:")]
    time.sleep(0.1)
print(max(windows), file=open("windows.txt", "w"))
net.stop()
""",
    "tcpdump": """
net, h1, h2 = pair(bw=10, delay="5ms")
capture = h2.popen("tcpdump -U -w h2.pcap -i h2-eth0 tcp")
time.sleep(1)
h2.cmd("iperf -s >/dev/null &")
print(h1.cmd("iperf -n 500K -c", h2.IP()))
capture.terminate()
capture.wait()
net.stop()
""",
    "broken": """
net = Mininet(LinearTopo(2), switch=OVSBridge, controller=None)
net.start()
for state in ("up", "down", "up"):
    net.configLinkStatus("s1", "s2", state)
    print(net["h1"].cmd("ping -c 3 -W 1", net["h2"].IP()))
net.stop()
""",
}
