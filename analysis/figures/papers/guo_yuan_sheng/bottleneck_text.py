"""The figure's title, which says what it shows, and its footer, which says what ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.figures.papers.guo_yuan_sheng.bottleneck_columns import Column
from analysis.figures.papers.guo_yuan_sheng.bottleneck_rows import short
from analysis.trials.labels import setting_label
from testbed.scenario.model import Scenario
from testbed.store import Trial


def title(scenario: Scenario, columns: Sequence[Column]) -> str:
    """The finding, in the figure's own numbers."""
    rate = scenario.topology.bottleneck.rate_mbit
    ran = [column for column in columns if len(column.delays_ms) and column.mean_mbps > 0]
    if not ran:
        return f"A bottleneck of {rate:g} Mbit/s: no trial has captures to draw"
    use = _range([100 * column.mean_mbps / rate for column in ran])
    used = f"{use} % of the {rate:g} Mbit/s bottleneck"
    delays = {column.variant: float(np.median(column.delays_ms)) for column in ran}
    low, high = min(delays, key=delays.__getitem__), max(delays, key=delays.__getitem__)
    if len(ran) == 1:
        return f"{low} uses {used},\nwith a median one-way delay of {short(delays[low])} ms"
    return (
        f"The variants use {used}, with a median one-way\n"
        f"delay from {short(delays[low])} ms ({low}) to {short(delays[high])} ms ({high})"
    )


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"


def footer(trials: Sequence[Trial], columns: Sequence[Column], many: int) -> str:
    """The footer: setting, engine, and how to read the figure."""
    return setting_label(trials[0]) + "\n" + _reading(trials, columns, many)


def _reading(trials: Sequence[Trial], columns: Sequence[Column], many: int) -> str:
    seeds = sorted({trial.scenario.seed for trial in trials})
    n = max((len(column.trials) for column in columns), default=0)
    numbers = ", ".join(map(str, seeds[:8])) + (" …" if len(seeds) > 8 else "")
    drawn = "a thin line each" if n <= many else "line: median, band: range over the seeds"
    how = f"n = {n} per variant, seed{'s' * (len(seeds) > 1)} {numbers}"
    if n > 1:
        how += f" ({drawn})"
    return f"{how}; 95 %: 95th percentile; ticks at the top of the windows: packets dropped"
