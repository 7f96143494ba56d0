"""The numbers printed by Kapre and Saxena: shown beside ours, never targets."""

from __future__ import annotations

# KS, section 3, CBR first: "t values" of Excel's t-test (equal variance, one tail), Vegas against
KS_P_VALUES = {"tahoe": 0.392, "reno": 0.307, "newreno": 0.464}
