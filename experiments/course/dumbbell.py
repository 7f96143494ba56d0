"""The network of the laboratories: senders, a router with the bottleneck's queue, a receiver.

    h1 ──┐
         ├── r ──(rate, queue)── sink
    h2 ──┘

Queue and delay are in different places, so that the queue holds what waits for the link and nothing
else: the whole round trip is on the way back, from the router to each sender. Offloads are off, so
that a packet in the queue is a packet on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mininet.net import Mininet

SINK_IP = "10.0.0.1"


@contextmanager
def dumbbell(
    rate: str, queue: str, rtts_ms: tuple[float, ...], loss_percent: float = 0
) -> Iterator[Any]:
    """Start the network with a sender for each round trip; `queue` is written as for tc."""
    net = Mininet(controller=None)
    router, sink = net.addHost("r", ip=None), net.addHost("sink", ip=None)
    senders = [net.addHost(f"h{number}", ip=None) for number in range(1, len(rtts_ms) + 1)]
    for number, host in enumerate([sink, *senders]):
        ends = {"ip": f"10.0.{number}.1/24"}, {"ip": f"10.0.{number}.9/24"}
        net.addLink(host, router, params1=ends[0], params2=ends[1])
    net.start()
    router.cmd("sysctl -w net.ipv4.ip_forward=1")
    for number, host in enumerate([sink, *senders]):
        host.cmd(f"ip route add default via 10.0.{number}.9")
        host.cmd(f"ethtool -K {host.name}-eth0 tso off gso off gro off")
        router.cmd(f"ethtool -K r-eth{number} tso off gso off gro off")
    for number, rtt_ms in enumerate(rtts_ms, 1):
        router.cmd(f"tc qdisc add dev r-eth{number} root netem delay {rtt_ms}ms")
        if loss_percent:
            senders[number - 1].cmd(
                f"tc qdisc add dev h{number}-eth0 root netem loss {loss_percent}%"
            )
    router.cmd("tc qdisc add dev r-eth0 root handle 1: htb default 1")
    router.cmd(f"tc class add dev r-eth0 parent 1: classid 1:1 htb rate {rate} burst 1600")
    refused = router.cmd(f"tc qdisc add dev r-eth0 parent 1:1 {queue}")
    try:
        if refused:
            raise SystemExit(f"tc does not take {queue!r}: {refused}")
        yield net
    finally:
        net.stop()


def transfer(net: Any, controls: Sequence[str], seconds: int) -> tuple[list[float], str]:
    """Send as fast as TCP can, from h1 with the first of the congestion controls, and so on.

    Returns the goodputs in Mbit/s, and what a ping from h1 to the sink says meanwhile.
    """
    clients = []
    for number, control in enumerate(controls, 1):
        port = 5200 + number
        net["sink"].cmd(f"modprobe tcp_{control}")
        net["sink"].popen(f"iperf3 -s -1 -p {port}")
        argv = f"iperf3 -c {SINK_IP} -p {port} -t {seconds} -C {control} -J".split()
        clients.append(net[f"h{number}"].popen(argv))
    ping = net["h1"].cmd(f"ping -i 0.2 -w {seconds} {SINK_IP}")
    ends = [json.loads(client.communicate()[0])["end"] for client in clients]
    return [end["sum_received"]["bits_per_second"] / 1e6 for end in ends], ping


def mean_rtt_ms(ping: str) -> float:
    """Return the mean of what ping measured."""
    return float(ping.splitlines()[-1].split("/")[4])
