"""ECN and DCTCP: marks in place of drops, and a window that follows how many there are.

    sudo python3 dctcp.py              or, without root: testbed mininet dctcp.py

The link has 20 Mbit/s and a round trip of 10 ms. Cubic fills the buffer, 100 packets or 61 ms,
until it drops. CoDel marks packets of a queue that stays longer than 5 ms or, with `ce_threshold`,
each that waited 2 ms. Cubic takes a mark for a loss; DCTCP shrinks by the share of marks.
"""

from __future__ import annotations

import re

from dumbbell import dumbbell, mean_rtt_ms, transfer

for control, queue in (
    ("cubic", "pfifo limit 100"),
    ("cubic", "codel limit 100 ecn"),
    ("dctcp", "codel limit 100 ecn ce_threshold 2ms"),
):
    with dumbbell("20mbit", queue, rtts_ms=(10,)) as net:
        for host in (net["h1"], net["sink"]):
            host.cmd(f"modprobe tcp_{control}; sysctl -w net.ipv4.tcp_ecn=1")
            host.cmd(f"sysctl -w net.ipv4.tcp_congestion_control={control}")  # echoes marks
        (goodput,), ping = transfer(net, [control], seconds=20)
        counts = net["r"].cmd("tc -s qdisc show dev r-eth0")
        marks = sum(int(count) for count in re.findall(r"(?:ecn|ce)_mark (\d+)", counts))
        rtt = f"mean RTT {mean_rtt_ms(ping):.1f} ms"
        print(f"{control}, {queue}: {goodput:.3f} Mbit/s, {rtt}, {marks} marks")
