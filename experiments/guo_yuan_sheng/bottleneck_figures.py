"""The figures of one flow of each variant through the router: over time, and round trips beside the
paper's.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from analysis.figures import cases, style
from analysis.figures.general import general_figures
from analysis.figures.plotting import error_bars, figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.setting_groups import by_setting
from analysis.metrics.metric_rows import AXIS, INVALID, SUSPECT, counted
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import path_rtt_ms, setting_label, variant_key
from analysis.trials.series import (
    Floats,
    FlowSeries,
    QueueSeries,
    Series,
    TrialSeries,
    trial_series,
)
from testbed.scenario.model import Scenario
from testbed.scenario.queues import DISCIPLINES, FRAME_BYTES
from testbed.store import Status, Trial


@dataclass(frozen=True)
class Column:
    """A variant: its trials that ran, over time, or the reason why none did."""

    variant: str
    trials: tuple[TrialSeries, ...]
    mean_mbps: float
    reason: str = ""
    doubts: str = ""  # how many of its trials are suspect, or invalid and left out

    def all(self, measure: Callable[[FlowSeries], Series | None]) -> list[Series]:
        """The measure of every flow of every seed."""
        found = [measure(flow) for trial in self.trials for flow in trial.flows]
        return [series for series in found if series is not None and len(series.value)]

    @property
    def queues(self) -> list[QueueSeries]:
        """The bottleneck's queue of every seed."""
        return [trial.queue for trial in self.trials if trial.queue is not None]

    @property
    def delays_ms(self) -> Floats:
        """Every packet's one-way delay, of all seeds."""
        parts = [flow.delays_ms for trial in self.trials for flow in trial.flows]
        return np.concatenate(parts) if parts else np.zeros(0)


def columns(trials: Iterable[Trial], metrics: pd.DataFrame) -> list[Column]:
    """One column per variant, in the usual order."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(_variant(trial), []).append(trial)
    return [_column(name, groups[name], metrics) for name in sorted(groups, key=variant_key)]


def _variant(trial: Trial) -> str:
    return "+".join(dict.fromkeys(flow.variant for flow in trial.scenario.flows if flow.variant))


def _column(variant: str, trials: list[Trial], metrics: pd.DataFrame) -> Column:
    own = metrics[metrics["trial"].isin([trial.path.name for trial in trials])]
    rows = counted(own)
    names = set(rows["trial"])
    ran = [trial for trial in trials if trial.path.name in names]
    rows = rows[rows["kind"] == "tcp"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside of Python's lock
        series = tuple(pool.map(trial_series, ran))
    return Column(
        variant,
        series,
        float(rows["throughput_mbps"].mean()),
        "" if ran else _reason(trials[0], own),
        _doubts(own),
    )


def _reason(trial: Trial, rows: pd.DataFrame) -> str:
    """Why a column is empty."""
    if trial.record.status is not Status.OK:
        return f"{trial.record.status}: {trial.record.reason}"
    return f"invalid: {rows['why'].iloc[0]}"


def _doubts(rows: pd.DataFrame) -> str:
    trials = rows.drop_duplicates("trial")["verdict"]
    counts = {name: int((trials == name).sum()) for name in (SUSPECT, INVALID)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


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
    rate = scenario.network.bottleneck_mbit
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
    limit = full_ms * scenario.network.bottleneck_mbit / 8 if full_ms else None
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
    queue = scenario.network.bottleneck_queue
    row = DISCIPLINES.get(queue.discipline)
    if row is None or not row.tail_drop:  # it acts long before its limit
        return None
    if queue.limit_bdp is not None:
        return queue.limit_bdp * path_rtt_ms(scenario)
    size = queue.limit_bytes or (queue.limit_packets or 0) * FRAME_BYTES
    return size * 8 / (scenario.network.bottleneck_mbit * 1e3)


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


def title(scenario: Scenario, columns: Sequence[Column]) -> str:
    """The finding, in the figure's own numbers."""
    rate = scenario.network.bottleneck_mbit
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


OVER_TIME_READING = "One column per variant; over the panels, means and percentiles of all packets."
MANY = 5  # seeds; beyond, their range is drawn instead of their lines
GUIDE_DASHES = (0, (4, 2))


def over_time(results: ExperimentResults) -> Iterator[AnyFigure]:
    """A figure for each setting whose flows were captured or sampled."""
    trials = [trial for trial in results.trials if _crosses(trial)]
    for stem, members in by_setting(trials, cases.stem(results.key, "time")).items():
        across = columns(members, results.rows)
        down = rows(members[0].scenario, across)
        data = _data(across, down)
        if len(data):
            caption = title(members[0].scenario, across).replace("\n", " ") + "."
            yield NamedFigure(
                stem, caption, _over_time_figure(members, across, down), data, OVER_TIME_READING
            )


def _data(across: Sequence[Column], down: Sequence[Row]) -> pd.DataFrame:
    """The lines as drawn: of many seeds their median and range, of a few each its own."""
    tables = [pd.DataFrame(columns=["variant", "measure", "line", "time_s", "value"])]
    for column in across:
        for row in down:
            lines = row.lines(column)
            several = len(lines) > MANY
            low, high = None, None
            if several:
                middle, low, high = _envelope(lines)
                lines = [middle]
            for number, series in enumerate(lines, start=1):
                values = {"time_s": series.time_s, "value": series.value}
                table = pd.DataFrame(values | ({"low": low, "high": high} if several else {}))
                name = row.label.replace("\n", " ")
                tables.append(table.assign(variant=column.variant, measure=name, line=number))
    found = [table for table in tables if len(table)]
    return pd.concat(found, ignore_index=True).dropna(subset="value") if found else tables[0]


def _crosses(trial: Trial) -> bool:
    """True if the flows cross the bottleneck; those to the router itself do not."""
    return all(flow.dst != "router" for flow in trial.scenario.flows)


def _over_time_figure(trials: Sequence[Trial], across: list[Column], down: list[Row]) -> Figure:
    scenario = trials[0].scenario
    figure, axes = _grid(down, len(across))
    colours = style.variant_colours(column.variant for column in across)
    for j, column in enumerate(across):
        for i, row in enumerate(down):
            _panel(axes[i][j], row, column, colours[column.variant], labelled=j == 0)
        _head(axes[0][j], column, colours[column.variant])
    for i, row in enumerate(down):
        _scale(axes[i][0], row)
    axes[0][0].set_xlim(0, scenario.duration_s)
    axes[0][0].xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 3, 5, 10], integer=True))
    for lowest in axes[-1]:
        lowest.set_xlabel("time (s)")
    words = title(scenario, across)
    figure.text(0.01, 0.99, words, fontsize=9, fontweight="bold", va="top", linespacing=1.3)
    small = footer(trials, across, MANY)
    figure.text(0.01, 0.012, small, fontsize=5.5, color=style.GREY, va="bottom", linespacing=1.4)
    return figure


def _grid(down: list[Row], width: int) -> tuple[Figure, list[list[Axes]]]:
    """The panels, between a title and a footer of fixed heights."""
    inches = 1.4 * sum(row.height for row in down) + 1.5
    head, foot = 0.45 / inches, 0.32 / inches
    figure = Figure(
        figsize=(max(style.WIDTH_INCHES, 1.4 * width), inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - head - foot), h_pad=0.05),
    )
    axes = figure.subplots(
        len(down),
        width,
        squeeze=False,
        sharex=True,
        sharey="row",
        height_ratios=[row.height for row in down],
    )
    return figure, [list(line) for line in axes]


def _panel(axes: Axes, row: Row, column: Column, colour: str, labelled: bool) -> None:
    if column.reason:
        axes.set_facecolor("#F2F2F2")
        axes.grid(False)
        return
    if row.reference:
        _draw_reference(axes, *row.reference, labelled)
    if lines := row.lines(column):
        axes.set_title(row.note(column), fontsize=6, color=style.GREY, loc="left", pad=2.5)
        _draw_lines(axes, lines, colour, row.filled)
    if row.drops:
        _draw_drops(axes, column)


def _draw_reference(axes: Axes, value: float, text: str, labelled: bool) -> None:
    axes.axhline(value, color=style.GREY, linewidth=0.7, linestyle=GUIDE_DASHES, zorder=1.5)
    if labelled:
        axes.annotate(
            text,
            (0.97, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=5.5,
            color=style.GREY,
            ha="right",
        )


def _draw_lines(axes: Axes, lines: list[Series], colour: str, filled: bool) -> None:
    """One seed: a line. A few: thin lines. Many: their median and their range."""
    if len(lines) > MANY:
        middle, low, high = _envelope(lines)
        axes.fill_between(middle.time_s, low, high, color=colour, alpha=0.25, linewidth=0)
        lines = [middle]
    one = len(lines) == 1
    for series in lines:
        seen = np.isfinite(series.value)
        time_s, value = series.time_s[seen], series.value[seen]
        axes.plot(time_s, value, color=colour, linewidth=0.9 if one else 0.5, alpha=0.85)
        if filled and one:
            axes.fill_between(time_s, value, color=colour, alpha=0.25, linewidth=0)


def _envelope(lines: list[Series]) -> tuple[Series, Floats, Floats]:
    """Median, minimum and maximum over the seeds, where any has a value."""
    table = pd.DataFrame(
        {i: pd.Series(each.value, index=np.round(each.time_s, 6)) for i, each in enumerate(lines)}
    ).dropna(how="all")
    median = Series(table.index.to_numpy(dtype=np.float64), table.median(axis=1).to_numpy())
    return median, table.min(axis=1).to_numpy(), table.max(axis=1).to_numpy()


def _draw_drops(axes: Axes, column: Column) -> None:
    """A tick at the top for each time that packets were dropped."""
    times = [queue.drop_times_s for queue in column.queues]
    every = np.concatenate(times) if times else np.zeros(0)
    axes.plot(
        every,
        np.full(len(every), 0.97),
        "|",
        transform=axes.get_xaxis_transform(),
        color=style.BLACK,
        markersize=3.5,
        markeredgewidth=0.4,
    )


def _scale(axes: Axes, row: Row) -> None:
    if row.top is None:
        axes.margins(y=0.15)  # room for the ticks at the top
        axes.autoscale_view()
    axes.set_ylim(0, row.top)
    axes.set_ylabel(row.label)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _head(axes: Axes, column: Column, colour: str) -> None:
    """The variant's name over its column, and why the column is empty if it is."""
    axes.annotate(
        column.variant,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 12),
        textcoords="offset points",
        fontsize=8.5,
        fontweight="bold",
        color=colour,
    )
    if column.doubts:
        axes.annotate(
            column.doubts,
            (1, 1),
            xycoords="axes fraction",
            xytext=(0, 12),
            textcoords="offset points",
            fontsize=5.5,
            color=style.GREY,
            ha="right",
        )
    if column.reason:
        text = textwrap.fill(column.reason, 24, max_lines=7)
        axes.text(0.05, 0.5, text, transform=axes.transAxes, fontsize=5.5, va="center")


BOTTLENECK_MEASURES = (
    Measure("throughput_mbps", "throughput (Mbit/s)", zero=False),
    Measure("rtt_min_ms", "smallest RTT: idle path (ms)"),
    Measure("rtt_mean_ms", "mean RTT: under load (ms)"),
)


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The flows over time; one figure per path and rate, one colour per queue; then the plane and
    the distributions.
    """
    yield from over_time(results)
    if not results.tcp.empty and f"{AXIS}queue" in results.tcp:
        for case, rows in cases.split(results.tcp, ("path",), ("queue", "variant")):
            yield _figure(results, case, rows)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _figure(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    variants = sorted(set(rows["variant"]), key=variant_key)
    known = dict(zip(dict.fromkeys(rows[f"{AXIS}queue"]), style.QUEUE_STYLES, strict=False))
    figure, [line] = figure_layout.grid(
        1, len(BOTTLENECK_MEASURES), panel=0.3 * len(variants) + 0.7
    )
    tables = []
    for axes, measure in zip(line, BOTTLENECK_MEASURES, strict=True):
        table = error_bars.summary(rows, ["variant", f"{AXIS}queue"], measure)
        tables.append(table.assign(measure=measure.label))
        for number, (queue, look) in enumerate(known.items()):
            shift = 0.24 * (number - (len(known) - 1) / 2)
            for _, cell in table[table[f"{AXIS}queue"] == queue].iterrows():
                error_bars.point(axes, variants.index(cell["variant"]) + shift, cell, look)
        axes.set_yticks(range(len(variants)), variants if axes is line[0] else [""] * len(variants))
        axes.set_ylim(len(variants) - 0.5, -0.5)
        axes.set_xlabel(measure.label)
        axes.tick_params(axis="y", length=0)
        figure_layout.widen_flat_axes(axes, "x")
        if measure.zero and np.isfinite(table["mean"]).any():
            axes.set_xlim(left=0)
    first = next(trial for trial in results.trials if trial.path.name == rows["trial"].iloc[0])
    rate = first.scenario.network.bottleneck_mbit
    if rows["throughput_mbps"].between(0.8 * rate, 1.2 * rate).all():
        line[0].axvline(rate, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 2)), zorder=1.5)
    figure_layout.legend(figure, known)
    figure_layout.title_and_foot(
        figure,
        _title(rate, case),
        cases.foot(results, rows),
    )
    return NamedFigure(
        cases.stem(results.key, "variants", *case.values()),
        _caption(rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _title(rate_mbit: float, case: dict[str, str]) -> str:
    way = f"One flow through {rate_mbit:g} Mbit/s"
    if case.get("path") == "router":
        way = f"One flow, of which only the ACKs pass the {rate_mbit:g} Mbit/s"
    return f"{way}: {cases.case_words(case)}" if case else way


def _caption(rows: pd.DataFrame) -> str:
    said = []
    for queue, own in rows.groupby(f"{AXIS}queue", sort=False):
        rates = own.groupby("variant")["throughput_mbps"].mean().dropna()
        loads = own.groupby("variant")["rtt_mean_ms"].mean().dropna()
        if len(rates) > 1 and len(loads) > 1:
            spread = f"throughput from {rates.min():.3g} Mbit/s ({rates.idxmin()}) to "
            spread += f"{rates.max():.3g} ({rates.idxmax()})"
            if rates.max() < 1.01 * rates.min():
                spread = f"each variant's throughput is {rates.min():.3g} Mbit/s"
            said.append(
                f"{queue}: {spread}, mean RTT from "
                f"{loads.min():.3g} ({loads.idxmin()}) to {loads.max():.3g} ms ({loads.idxmax()})"
            )
    text = "; ".join(said)
    return f"With {text}." if said else ""
