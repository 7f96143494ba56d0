"""Fairness: how two flows share a link, and what makes them share it unequally.

    sudo python3 fairness.py           or, without root: testbed mininet fairness.py

Jain's index is 1 if both have the same, and 1/2 if one has all. Of two Reno flows, that with the
shorter round trip grows faster; Vegas makes way for whoever fills the queue.
"""

from __future__ import annotations

from dumbbell import dumbbell, transfer

for title, controls, rtts_ms in (
    ("same", ("reno", "reno"), (40, 40)),
    ("round trips", ("reno", "reno"), (40, 160)),
    ("variants", ("reno", "vegas"), (40, 40)),
):
    with dumbbell("10mbit", "pfifo limit 100", rtts_ms) as net:
        rates, _ping = transfer(net, controls, seconds=60)
        jain = sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates))
        print(f"{title}: {rates[0]:.3f} and {rates[1]:.3f} Mbit/s, Jain's index {jain:.3f}")
