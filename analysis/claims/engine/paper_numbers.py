"""What the papers print: to stand beside our numbers, not to be reached."""

from __future__ import annotations

from dataclasses import dataclass

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

# PMW, section 4.B and figure 2: by loss event rate
PMW_RTT_S = 0.070
PMW_RATE_MBIT = 45.0
PMW_MOST_LOSSES = {0.0005: 40, 0.001: 35}
PMW_MODEL_ERRORS = {
    ("newreno", 0.0005): (0.0015, 0.0311),
    ("newreno", 0.001): (0.0020, 0.0629),
    ("newreno-impatient", 0.0005): (0.0045, 0.0334),
    ("newreno-impatient", 0.001): (0.0074, 0.0554),
}
PMW_CRITICAL_LOSSES = 4  # m*
PMW_FIRST_IMPATIENT = {0.0005: 26, 0.001: 21}  # losses an event from which Impatient is better

# PMW, section 5 and figure 4
PMW_CROSSINGS = {0.0005: 27, 0.001: 21}  # m_t
PMW_CROSSING_OF_WINDOW = {0.0005: 1 / 3, 0.0025: 1 / 2}  # m_t / W_IMP
PMW_THIN_FROM = 0.008  # the loss event rate above which Impatient's region is "very thin"
PMW_GONE_FROM = 0.03  # and the one from which both regions "essentially vanish"

# PMW, section 4.C
PMW_MEAN_ERROR = {"droptail": 0.0978, "red": 0.0707}  # of the model, 4 to 200 flows
PMW_WORST_ERROR = 0.2064  # 256 flows, DropTail
PMW_LOSSES_PER_EVENT = {  # least and most, 4 to 200 flows; RED: with 4 and with 256
    ("newreno", "droptail"): (2.11, 4.16),
    ("newreno-impatient", "droptail"): (1.93, 2.93),
    ("newreno", "red"): (1.22, 1.40),
}
PMW_STEADY_AHEAD = {(4, 64): 0.1359, (64, 256): 0.0554}  # by background flows, DropTail


@dataclass(frozen=True)
class BackgroundRow:
    """A row of PMW's table II: Slow-but-Steady beside so many flows, DropTail."""

    flows: int
    loss_event_rate: float
    loss_rate: float
    simulated: float  # segments a round trip
    predicted: float


PMW_TABLE_2 = (
    BackgroundRow(4, 0.0007, 0.0020, 45.88, 41.69),
    BackgroundRow(8, 0.0008, 0.0030, 43.28, 38.42),
    BackgroundRow(12, 0.0008, 0.0030, 43.52, 38.27),
    BackgroundRow(16, 0.0010, 0.0042, 38.08, 32.88),
    BackgroundRow(24, 0.0015, 0.0058, 30.44, 26.74),
    BackgroundRow(32, 0.0021, 0.0081, 25.29, 22.06),
    BackgroundRow(48, 0.0038, 0.0120, 18.06, 15.91),
    BackgroundRow(64, 0.0066, 0.0199, 12.89, 11.15),
    BackgroundRow(96, 0.0124, 0.0340, 8.61, 7.87),
    BackgroundRow(128, 0.0243, 0.0574, 5.38, 5.23),
    BackgroundRow(160, 0.0406, 0.0897, 3.58, 3.67),
    BackgroundRow(180, 0.0474, 0.1025, 3.14, 3.42),
    BackgroundRow(192, 0.0531, 0.1122, 2.85, 3.08),
    BackgroundRow(224, 0.0728, 0.1497, 2.08, 2.47),
    BackgroundRow(256, 0.0829, 0.1634, 1.83, 2.21),
)


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
    """A row of Wireshark's packet lengths; rates are packets a millisecond."""

    count: int
    average: float | None
    least: int | None
    most: int | None
    rate: float
    percent: float
    burst_rate: float | None = None
    burst_start_s: float | None = None


_NONE = LengthsRow(0, None, None, None, 0, 0)
RGSJ_LENGTHS = {  # cubic, good WiFi: all packets, then a bucket each
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
