"""The numbers printed by Joshi and Hattikar: shown beside ours, never targets."""

from __future__ import annotations

# JH, tables 1 and 2, by variant and queue
JH_DROP_RATES = {
    ("reno", "droptail"): 0.00154448,
    ("reno", "red"): 0.00061112,
    ("sack", "droptail"): 0.00160811,
    ("sack", "red"): 0.000616975,
}
JH_LATENCIES_S = {
    ("reno", "droptail"): 0.0655081,
    ("reno", "red"): 0.065285,
    ("sack", "droptail"): 0.0658671,
    ("sack", "red"): 0.0651426,
}
JH_OSCILLATION_MBPS = (6.0, 10.0)  # TCP beside CBR of 7 Mbit/s
