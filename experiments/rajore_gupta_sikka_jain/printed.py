"""The numbers printed by Rajore, Gupta, Sikka and Jain: shown beside ours, never targets."""

from __future__ import annotations

from dataclasses import dataclass

# RGSJ: three variants, set on the laptop; by network, then by variant
RGSJ_LOAD_S = {
    "wifi-good": {"veno": 109, "cubic": 122, "vegas": 124},
    "ethernet": {"veno": 112, "cubic": 116, "vegas": 131},
}
RGSJ_SPIKES = {  # how many, and the largest in packets/s
    "wifi-good": {"veno": (6, 186), "cubic": (5, 261), "vegas": (8, 133)},
    "ethernet": {"veno": (8, 288), "cubic": (5, 147), "vegas": (3, 179)},
}
RGSJ_PACKET_BYTES = {  # good WiFi, by transport: Wireshark's averages
    "https": {"veno": 3229.00, "cubic": 3269.15, "vegas": 3445.23},
    "quic": {"veno": 926.71, "cubic": 917.71, "vegas": 991.20},
}
RGSJ_KBIT_PER_S = {"veno": 319, "cubic": 342, "vegas": 333}  # the same captures, over TCP


@dataclass(frozen=True)
class LengthsRow:
    """A row of Wireshark's packet lengths; rates are packets per millisecond."""

    count: int
    average: float | None
    least: int | None
    most: int | None
    rate: float
    percent: float
    burst_rate: float | None = None
    burst_start_s: float | None = None


_NONE = LengthsRow(0, None, None, None, 0, 0)
RGSJ_LENGTHS = {  # cubic, good WiFi: all packets, then one row per bucket
    "https": (
        LengthsRow(3682, 3269.15, 54, 65374, 0.0131, 100, 1.03, 280.434),
        _NONE,
        _NONE,
        LengthsRow(1809, 56.01, 54, 78, 0.0064, 49.13, 0.48, 280.434),
        LengthsRow(264, 101.62, 85, 159, 0.0009, 7.17, 0.10, 29.432),
        LengthsRow(57, 223.16, 160, 315, 0.0002, 1.55, 0.07, 29.420),
        LengthsRow(56, 509.93, 323, 626, 0.0002, 1.52, 0.02, 14.201),
        LengthsRow(51, 880.31, 645, 1189, 0.0002, 1.39, 0.03, 80.066),
        LengthsRow(309, 1907.77, 1304, 2554, 0.0011, 8.39, 0.21, 280.434),
        LengthsRow(355, 4093.69, 2669, 5054, 0.0013, 9.64, 0.23, 21.872),
        LengthsRow(781, 12522.33, 5734, 65374, 0.0028, 21.21, 0.32, 65.310),
    ),
    "quic": (
        LengthsRow(19576, 917.71, 42, 18367, 0.0675, 100, 3.81, 288.475),
        _NONE,
        _NONE,
        LengthsRow(6293, 70.83, 42, 79, 0.0217, 32.15, 0.63, 288.469),
        LengthsRow(986, 96.90, 80, 155, 0.0034, 5.04, 0.62, 288.547),
        LengthsRow(138, 223.02, 161, 319, 0.0005, 0.70, 0.06, 12.204),
        LengthsRow(126, 484.35, 320, 637, 0.0004, 0.64, 0.06, 3.495),
        LengthsRow(208, 892.24, 649, 1266, 0.0007, 1.06, 0.06, 287.882),
        LengthsRow(11690, 1400.27, 1282, 2463, 0.0403, 59.72, 2.98, 288.470),
        LengthsRow(77, 3304.30, 2707, 4877, 0.0003, 0.39, 0.18, 287.248),
        LengthsRow(58, 9015.86, 5774, 18367, 0.0002, 0.30, 0.18, 287.252),
    ),
}

# RGSJ, shaped Ethernet: five runs each, in their order
RGSJ_SHAPED = {
    "KB/s": {
        "veno": (41, 41, 40, 41, 44),
        "cubic": (39, 40, 41, 43, 41),
        "vegas": (39, 39, 40, 41, 41),
    },
    "retransmitted bytes": {
        "veno": (1913, 46985, 38535, 44277, 15791),
        "cubic": (40212, 56851, 49587, 47146, 107703),
        "vegas": (11621, 43003, 16852, 37958, 14992),
    },
    "duplicate ACKs": {
        "veno": (142, 188, 105, 134, 115),
        "cubic": (193, 222, 277, 371, 249),
        "vegas": (121, 196, 113, 104, 148),
    },
    "out of order": {
        "veno": (0, 1, 0, 0, 0),
        "cubic": (1, 0, 0, 4, 0),
        "vegas": (0, 0, 0, 1, 1),
    },
}

# RGSJ, the lecture hall's WiFi
RGSJ_STARTUP_S = (60.0, 120.0)  # "page load time ... 1-2 mins before any video even started"
RGSJ_QUIC_SOONER_S = (40.0, 50.0)
RGSJ_WORST_ERRORS = {"quic": 12.5, "https": 100.0}  # packets/s

# RGSJ, weak and strong signal, medians: KB/s, peaks, duplicate ACKs
RGSJ_SIGNAL = {
    "wifi-weak": {"veno": (32, 11, 88), "cubic": (33, 12, 112), "vegas": (33, 13, 94)},
    "wifi-strong": {"veno": (32, 12, 108), "cubic": (33, 13, 72), "vegas": (35, 15, 90)},
}
