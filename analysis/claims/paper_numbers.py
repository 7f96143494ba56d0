"""What the papers print: to stand beside our numbers, not to be reached."""

from __future__ import annotations

# KS, section 3, CBR first: "t values" of Excel's t-test (equal variance, one tail), Vegas against
KS_P_VALUES = {"tahoe": 0.392, "reno": 0.307, "newreno": 0.464}

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

# GYS, section 3.2: in words and bounds, read off its figures
GYS_BBR_ABOVE_MBPS = 1.020
GYS_RENO_BELOW_MBPS = 0.970
GYS_IDLE_MS = {"receiver": "about 0.9", "router": "0.48 to 0.52"}
GYS_BBR_SHARE = 0.60
GYS_CUBIC_SHARE = 0.10
