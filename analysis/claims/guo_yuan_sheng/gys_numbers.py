"""The numbers printed by Guo, Yuan and Sheng: shown beside ours, never targets."""

from __future__ import annotations

# GYS, section 3.2: in words, and as bounds read off its figures
GYS_BBR_ABOVE_MBPS = 1.020
GYS_RENO_BELOW_MBPS = 0.970
GYS_IDLE_MS = {"receiver": "about 0.9", "router": "0.48 to 0.52"}
GYS_BBR_SHARE = 0.60
GYS_CUBIC_SHARE = 0.10
