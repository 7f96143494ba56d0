"""Packet lengths as Wireshark's Statistics → Packet Lengths has them, burst rates included."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

BUCKETS = (0, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120)  # where each begins
WINDOW_MS = 100  # a burst is what falls into it …
BURST_STEP_MS = 5  # … counted in steps of this: both are Wireshark's own settings
ALL = "Packet Lengths"


def packet_lengths(
    time_ns: npt.NDArray[np.int64], length: npt.NDArray[np.integer], start_ns: int
) -> pd.DataFrame:
    """One row for all packets and one per bucket; times are the capture's, in its order.

    Rates are packets a millisecond; bursts begin at seconds since the capture's first frame.
    """
    now_ms = (time_ns - start_ns) / 1e6
    elapsed_ms = float(now_ms[-1] - now_ms[0]) if len(now_ms) else 0.0
    which = np.searchsorted(BUCKETS, length, side="right") - 1
    rows = [_row(ALL, now_ms, length, elapsed_ms, len(length))]
    for index, low in enumerate(BUCKETS):
        in_bucket = which == index
        high = f"{BUCKETS[index + 1] - 1}" if index + 1 < len(BUCKETS) else "and greater"
        name = f"{low}-{high}" if index + 1 < len(BUCKETS) else f"{low} {high}"
        rows.append(_row(name, now_ms[in_bucket], length[in_bucket], elapsed_ms, len(length)))
    return pd.DataFrame(rows)


def _row(
    name: str,
    now_ms: npt.NDArray[np.float64],
    length: npt.NDArray[np.integer],
    elapsed_ms: float,
    total: int,
) -> dict[str, object]:
    rate, start_s = _burst(now_ms)
    known = len(length) > 0
    return {
        "lengths": name,
        "count": len(length),
        "average": float(length.mean()) if known else float("nan"),
        "min": int(length.min()) if known else None,
        "max": int(length.max()) if known else None,
        "rate_per_ms": len(length) / elapsed_ms if elapsed_ms else 0.0,
        "percent": 100 * len(length) / total if total else 0.0,
        "burst_rate_per_ms": rate,
        "burst_start_s": start_s,
    }


def _burst(now_ms: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the highest packet rate in any window, per millisecond, and when that window began.

    Wireshark's window ends with the step that a packet falls into, so it moves by whole steps;
    until the first window is over, it begins with the capture.
    """
    if not len(now_ms):
        return 0.0, float("nan")
    steps = np.floor(now_ms / BURST_STEP_MS)
    first = np.searchsorted(steps, steps - WINDOW_MS / BURST_STEP_MS, side="right")
    counts = np.arange(1, len(steps) + 1) - first
    peak = int(counts.argmax())
    early = steps[peak] < WINDOW_MS / BURST_STEP_MS
    return counts[peak] / WINDOW_MS, 0.0 if early else float(now_ms[first[peak]]) / 1e3
