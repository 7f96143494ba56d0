"""The measures that are drawn: a row each, with the line that says what the network allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.figures.papers.guo_yuan_sheng.bottleneck_columns import Column
from analysis.trials.labels import path_rtt_ms
from analysis.trials.series import Series
from testbed.scenario.model import FRAME_OVERHEAD_BYTES, Scenario
from testbed.scenario.queues import DISCIPLINES

FRAME_BYTES = 1500 + FRAME_OVERHEAD_BYTES


@dataclass(frozen=True)
class Row:
    """A measure: what to draw of a column, the words above it, and a line to compare with."""

    label: str
    lines: Callable[[Column], list[Series]]
    note: Callable[[Column], str]
    top: float | None = None  # of the axis; None: the data's
    reference: tuple[float, str] | None = None
    filled: bool = False  # down to zero
    drops: bool = False  # ticks where packets were dropped
    height: float = 1.0  # beside the other rows


def rows(scenario: Scenario, columns: list[Column]) -> list[Row]:
    """The measures that were taken."""
    throughput, delay, window = throughput_row(scenario), delay_row(scenario), window_row()
    # the queue is the delay in bytes: drawn where delays were not captured
    second = delay if taken(delay, columns) else queue_row(scenario)
    return [row for row in (throughput, second, window) if taken(row, columns)] or [throughput]


def taken(row: Row, columns: list[Column]) -> bool:
    """True if any column has this measure."""
    return any(row.lines(column) for column in columns)


def throughput_row(scenario: Scenario) -> Row:
    """Throughput, and the bottleneck's rate."""
    rate = scenario.topology.bottleneck.rate_mbit
    return Row(
        "throughput\n(Mbit/s)",
        lambda column: column.all(lambda flow: flow.throughput_mbps),
        lambda column: f"mean {short(column.mean_mbps)}",
        top=1.3 * rate,
        reference=(rate, f"bottleneck: {rate:g}"),
        height=0.75,
    )


def delay_row(scenario: Scenario) -> Row:
    """One-way delay, and that of a packet behind a full buffer."""
    full_ms = _full_ms(scenario)
    return Row(
        "one-way delay\n(ms)",
        lambda column: column.all(lambda flow: flow.delay_ms),
        _delay_note,
        top=1.25 * full_ms if full_ms else None,
        reference=(full_ms, f"full buffer: {short(full_ms)}") if full_ms else None,
    )


def queue_row(scenario: Scenario) -> Row:
    """The queue, and its limit."""
    full_ms = _full_ms(scenario)
    limit = full_ms * scenario.topology.bottleneck.rate_mbit / 8 if full_ms else None
    return Row(
        "queue\n(kB)",
        lambda column: [queue.backlog_kb for queue in column.queues],
        lambda column: f"peak {max(queue.peak_kb for queue in column.queues):.0f}",
        top=1.25 * limit if limit else None,
        reference=(limit, f"limit: {short(limit)}") if limit else None,
        filled=True,
    )


def window_row() -> Row:
    """The congestion window, and when packets were dropped."""
    return Row(
        "congestion window\n(packets)",
        lambda column: column.all(lambda flow: flow.cwnd),
        _window_note,
        drops=True,
    )


def short(value: float) -> str:
    """Three digits are enough for a small figure."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def _full_ms(scenario: Scenario) -> float | None:
    """The drain time of a full buffer; None for queues that act before their limit."""
    bottleneck = scenario.topology.bottleneck
    queue = bottleneck.queue
    row = DISCIPLINES.get(queue.discipline)
    if row is None or not row.tail_drop:  # it acts long before its limit
        return None
    if queue.limit_bdp is not None:
        return queue.limit_bdp * path_rtt_ms(scenario)
    size = queue.limit_bytes or (queue.limit_packets or 0) * FRAME_BYTES
    return size * 8 / (bottleneck.rate_mbit * 1e3)


def _delay_note(column: Column) -> str:
    median, high = np.percentile(column.delays_ms, [50, 95])
    return f"median {short(median)}, 95 % {short(high)}"


def _window_note(column: Column) -> str:
    peak = f"peak {max(flow.cwnd_peak for trial in column.trials for flow in trial.flows):.0f}"
    drops = [queue.drops for queue in column.queues]
    if not drops:
        return peak
    mean = sum(drops) / len(drops)
    return f"{peak}, {mean:.3g} drop{'s' * (mean != 1)}"
