"""Variants of TCP: what each makes of a clean link, and of one that loses a packet in a hundred.

    sudo python3 variants.py           or, without root: testbed mininet variants.py

The link has 10 Mbit/s, a round trip of 40 ms, and a queue of as much (34 packets). Reno and Cubic
take every loss for a full queue; BBR measures the rate.
"""

from __future__ import annotations

from dumbbell import dumbbell, mean_rtt_ms, transfer

for loss_percent in (0, 1):
    for control in ("reno", "cubic", "bbr"):
        with dumbbell("10mbit", "pfifo limit 34", (40,), loss_percent) as net:
            (goodput,), ping = transfer(net, [control], seconds=30)
            rtt = f"mean RTT {mean_rtt_ms(ping):.1f} ms"
            print(f"{control}, {loss_percent} % lost: {goodput:.3f} Mbit/s, {rtt}")
