"""The numbers printed by Rajore, Gupta, Sikka and Jain: shown beside ours, never targets.

By variant, which they set on the laptop. Rates are in Mbit/s, and what has five runs is a median.
"""

from __future__ import annotations

KBYTE_PER_S = 8e-3  # Mbit/s

RGSJ_LOAD_S = {
    "wifi-good": {"veno": 109.0, "cubic": 122.0, "vegas": 124.0},
    "ethernet": {"veno": 112.0, "cubic": 116.0, "vegas": 131.0},
}
RGSJ_SPIKES = {
    "wifi-good": {"veno": 6.0, "cubic": 5.0, "vegas": 8.0},
    "ethernet": {"veno": 8.0, "cubic": 5.0, "vegas": 3.0},
}
RGSJ_LARGEST_SPIKE = {"veno": 288.0, "cubic": 147.0, "vegas": 179.0}  # Ethernet, packets/s

# good WiFi: Wireshark's averages, and its rates of the same captures over TCP
RGSJ_TCP_BYTES = {"veno": 3229.0, "cubic": 3269.15, "vegas": 3445.23}
RGSJ_QUIC_BYTES = 917.71  # set to Cubic
RGSJ_MBIT_PER_S = {"veno": 0.319, "cubic": 0.342, "vegas": 0.333}

# shaped Ethernet
RGSJ_SHAPED_RATE = {"veno": 41 * KBYTE_PER_S, "cubic": 41 * KBYTE_PER_S, "vegas": 40 * KBYTE_PER_S}
RGSJ_SHAPED_BYTES = {"veno": 38535.0, "cubic": 49587.0, "vegas": 16852.0}  # retransmitted
RGSJ_SHAPED_DUPLICATES = {"veno": 134.0, "cubic": 249.0, "vegas": 121.0}
RGSJ_SHAPED_OUT_OF_ORDER = {"veno": 0.0, "cubic": 0.0, "vegas": 0.0}

# the lecture hall's WiFi
RGSJ_STARTUP_S = (60.0, 120.0)  # "page load time ... 1-2 mins before any video even started"
RGSJ_QUIC_SOONER_S = (40.0, 50.0)
RGSJ_WORST_ERRORS = {"quic": 12.5, "https": 100.0}  # packets/s

# weak and strong signal
WEAK, STRONG = "wifi-weak", "wifi-good"
RGSJ_PEAKS = {
    WEAK: {"veno": 11.0, "cubic": 12.0, "vegas": 13.0},
    STRONG: {"veno": 12.0, "cubic": 13.0, "vegas": 15.0},
}
RGSJ_DUPLICATES = {
    WEAK: {"veno": 88.0, "cubic": 112.0, "vegas": 94.0},
    STRONG: {"veno": 108.0, "cubic": 72.0, "vegas": 90.0},
}
