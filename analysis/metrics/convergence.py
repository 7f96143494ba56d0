"""When a flow has settled: the one definition of convergence time.

**Convergence time** is the time from the flow's start to the start of the first of its whole
1 s bins from which on every bin's throughput lies within 20 % of the mean of the bins of the
second half. It is not known (NaN) for a flow that has not settled by its middle: the second
half's mean is then not that of a settled flow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BIN_S = 1.0
WITHIN = 0.2


def convergence_time_s(time_s: Floats, rate: Floats, start_s: float, stop_s: float) -> float:
    """Of a flow with these rates (any unit) around these times, on a grid of at most 1 s."""
    bins = int((stop_s - start_s) / BIN_S + 1e-9)
    means = _binned(time_s - start_s, rate, bins)
    half = bins // 2
    if half < 1 or np.isnan(means).any():
        return float("nan")
    settled = float(means[half:].mean())
    outside = np.flatnonzero(np.abs(means - settled) > WITHIN * abs(settled))
    first = int(outside[-1]) + 1 if len(outside) else 0
    return first * BIN_S if first <= half and settled > 0 else float("nan")


def _binned(since_s: Floats, rate: Floats, bins: int) -> Floats:
    """The mean rate in each bin, NaN where nothing is known."""
    place = np.floor(since_s / BIN_S + 1e-9).astype(np.int64)
    own = (place >= 0) & (place < bins) & np.isfinite(rate)
    counts = np.bincount(place[own], minlength=bins)
    sums = np.bincount(place[own], weights=rate[own], minlength=bins)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
