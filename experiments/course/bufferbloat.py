"""Bufferbloat: what a large buffer does to everybody else's round trip.

    sudo python3 bufferbloat.py        or, without root: testbed mininet bufferbloat.py

A sender fills a link of 1.5 Mbit/s. What waits in the router's queue is what a ping waits for: with
N packets of 1514 bytes, up to N × 8 ms. The goodput is the same.
"""

from __future__ import annotations

from pathlib import Path

from dumbbell import dumbbell, mean_rtt_ms, transfer

for packets in (20, 100):
    with dumbbell("1.5mbit", f"pfifo limit {packets}", rtts_ms=(20,)) as net:
        (goodput,), ping = transfer(net, ["reno"], seconds=60)
        Path(f"ping-{packets}.txt").write_text(ping)
        rtt = f"mean RTT {mean_rtt_ms(ping):.1f} ms"
        print(f"queue {packets}: {goodput:.3f} Mbit/s, {rtt}")
