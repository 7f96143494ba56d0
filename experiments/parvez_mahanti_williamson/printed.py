"""The numbers printed by Parvez, Mahanti and Williamson: shown beside ours, never targets."""

from __future__ import annotations

from dataclasses import dataclass

# PMW, section 4.B and figure 2: by loss event rate
PMW_RTT_S = 0.070
PMW_MAX_MAPPED_LOSSES = {0.0005: 40, 0.001: 35}
PMW_MODEL_ERRORS = {
    ("newreno", 0.0005): (0.0015, 0.0311),
    ("newreno", 0.001): (0.0020, 0.0629),
    ("newreno-impatient", 0.0005): (0.0045, 0.0334),
    ("newreno-impatient", 0.001): (0.0074, 0.0554),
}
PMW_CRITICAL_LOSSES = 4  # m*
PMW_FIRST_IMPATIENT = {0.0005: 26, 0.001: 21}  # losses per event from which Impatient is better

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
    """A row of PMW's table II: Slow-but-Steady beside this many flows, DropTail."""

    flows: int
    loss_event_rate: float
    loss_rate: float
    simulated: float  # segments per round trip
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
