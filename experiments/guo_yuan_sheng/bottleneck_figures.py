"""Figures of one flow of each variant through the router: over time, and its round trips."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.figure import (
    Area,
    Axis,
    Curve,
    Figure,
    Mark,
    Panel,
    PointSeries,
    ReferenceLine,
    legend_entries,
)
from analysis.figures.general import general_figures
from analysis.figures.general.messages import said_name
from analysis.figures.means import Measure
from analysis.figures.setting_groups import by_setting
from analysis.metrics.metric_rows import AXIS, INVALID, SUSPECT, counted
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import path_rtt_ms, queue_label, setting_label, variant_key
from analysis.trials.series import (
    Floats,
    FlowSeries,
    QueueSeries,
    Series,
    TrialSeries,
    trial_series,
)
from testbed.scenario.model import Scenario
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.queues import DISCIPLINES
from testbed.store.reading import Trial
from testbed.store.records import Status


@dataclass(frozen=True)
class Column:
    """A variant: its trials that ran, over time, or the reason why none did."""

    variant: str
    trials: tuple[TrialSeries, ...]
    mean_mbps: float
    reason: str = ""
    doubts: str = ""  # how many of its trials are suspect, or invalid and left out

    def all(self, measure: Callable[[FlowSeries], Series | None]) -> list[Series]:
        """Return the measure of every flow of every seed."""
        lines = [measure(flow) for trial in self.trials for flow in trial.flows]
        return [series for series in lines if series is not None and len(series.value)]

    @property
    def queues(self) -> list[QueueSeries]:
        """Return the bottleneck's queue of every seed."""
        return [trial.queue for trial in self.trials if trial.queue is not None]

    @property
    def delays_ms(self) -> Floats:
        """Return the one-way delay of every packet of all seeds."""
        parts = [flow.delays_ms for trial in self.trials for flow in trial.flows]
        return np.concatenate(parts) if parts else np.zeros(0)


def columns(trials: Iterable[Trial], metrics: pd.DataFrame) -> list[Column]:
    """Return one column per variant, in the usual order."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(_variant(trial), []).append(trial)
    return [_column(name, groups[name], metrics) for name in sorted(groups, key=variant_key)]


def _variant(trial: Trial) -> str:
    return "+".join(dict.fromkeys(flow.variant for flow in trial.scenario.flows if flow.variant))


def _column(variant: str, trials: list[Trial], metrics: pd.DataFrame) -> Column:
    of_trials = metrics[metrics["trial"].isin([trial.path.name for trial in trials])]
    rows = counted(of_trials)
    names = set(rows["trial"])
    ran = [trial for trial in trials if trial.path.name in names]
    rows = rows[rows["kind"] == "tcp"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside of Python's lock
        series = tuple(pool.map(trial_series, ran))
    return Column(
        variant,
        series,
        float(rows["throughput_mbps"].mean()),
        "" if ran else _reason(trials[0], of_trials),
        _doubts(of_trials),
    )


def _reason(trial: Trial, rows: pd.DataFrame) -> str:
    """Say why a column is empty."""
    if trial.record.status is not Status.OK:
        return f"{trial.record.status}: {trial.record.reason}"
    return f"invalid: {rows['why'].iloc[0]}"


def _doubts(rows: pd.DataFrame) -> str:
    trials = rows.drop_duplicates("trial")["verdict"]
    counts = {name: int((trials == name).sum()) for name in (SUSPECT, INVALID)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class Row:
    """A measure: the lines of a column, the words above them, and a line to compare with."""

    label: str
    lines: Callable[[Column], list[Series]]
    note: Callable[[Column], str]
    top: float | None = None  # of the axis; None: the data's
    reference: tuple[float, str] | None = None
    filled: bool = False  # down to zero
    drops: bool = False  # ticks where packets were dropped
    height: float = 1.0  # beside the other rows


def rows(scenario: Scenario, columns: list[Column]) -> list[Row]:
    """Return the rows of the measures that the trials have."""
    throughput, delay, window = throughput_row(scenario), delay_row(scenario), window_row()
    # the queue is the delay in bytes: drawn where delays were not captured
    second = delay if taken(delay, columns) else queue_row(scenario)
    return [row for row in (throughput, second, window) if taken(row, columns)] or [throughput]


def taken(row: Row, columns: list[Column]) -> bool:
    """Tell whether any column has this measure."""
    return any(row.lines(column) for column in columns)


def throughput_row(scenario: Scenario) -> Row:
    """Return the row of throughput, with the bottleneck's rate."""
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
    """Return the row of one-way delay, with that of a packet behind a full buffer."""
    full_ms = _full_ms(scenario)
    return Row(
        "one-way delay\n(ms)",
        lambda column: column.all(lambda flow: flow.delay_ms),
        _delay_note,
        top=1.25 * full_ms if full_ms else None,
        reference=(full_ms, f"full buffer: {short(full_ms)}") if full_ms else None,
    )


def queue_row(scenario: Scenario) -> Row:
    """Return the row of the queue's length, with its limit."""
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
    """Return the row of the congestion window, with the times at which packets were dropped."""
    return Row(
        "congestion window\n(packets)",
        lambda column: column.all(lambda flow: flow.cwnd),
        _window_note,
        drops=True,
    )


def short(value: float) -> str:
    """Write a number with three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def _full_ms(scenario: Scenario) -> float | None:
    """Return the time to drain a full buffer; None for queues that act before their limit."""
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
    average = " on average" if len(drops) > 1 else ""
    return f"{peak}, {mean:.3g} drop{'s' * (mean != 1)}{average}"


def title(scenario: Scenario, columns: Sequence[Column], queue: str = "") -> str:
    """Write the use of the bottleneck and the range of delays, with the queue where it varies."""
    rate = scenario.network.bottleneck_mbit
    ran = [column for column in columns if len(column.delays_ms) and column.mean_mbps > 0]
    if not ran:
        return f"A bottleneck of {rate:g} Mbit/s: no trial has captures to draw"
    use = _range([100 * column.mean_mbps / rate for column in ran])
    used = f"{use} % of the {rate:g} Mbit/s bottleneck"
    delays = {column.variant: float(np.median(column.delays_ms)) for column in ran}
    low, high = min(delays, key=delays.__getitem__), max(delays, key=delays.__getitem__)
    start = f"With {queue}, " if queue else ""
    least, most = short(delays[low]), short(delays[high])
    if len(ran) == 1:
        return f"{start}{low} uses {used},\nwith a median one-way delay of {least} ms"
    span = f"of {least} ms" if least == most else f"from {least} ms ({low}) to {most} ms ({high})"
    return (
        f"{start or 'The '}{'the ' * bool(start)}variants use {used}, with a median one-way\n"
        f"delay {span}"
    )


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"


def footer(trials: Sequence[Trial], columns: Sequence[Column]) -> str:
    """Write the footer: setting, engine, and how to read the figure."""
    return setting_label(trials[0]) + "\n" + _reading(trials, columns)


def _reading(trials: Sequence[Trial], columns: Sequence[Column]) -> str:
    seeds = sorted({trial.scenario.seed for trial in trials})
    n = max((len(column.trials) for column in columns), default=0)
    numbers = ", ".join(map(str, seeds[:8])) + (" …" if len(seeds) > 8 else "")
    drawn = "a thin line each" if n <= MANY_SEEDS else "line: median, band: range over the seeds"
    how = f"n = {n} per variant, seed{'s' * (len(seeds) > 1)} {numbers}"
    if n > 1:
        how += f" ({drawn})"
    return f"{how}; 95 %: 95th percentile; ticks at the top of the windows: packets dropped"


OVER_TIME_READING = "One column per variant; over the panels, means and percentiles of all packets."
MANY_SEEDS = 5  # beyond, their range is drawn instead of their lines
LABELS_INCHES = 0.73  # under and between the rows


def over_time(results: ExperimentResults) -> Iterator[Figure]:
    """Yield a figure for each setting whose flows were captured or sampled."""
    trials = [trial for trial in results.trials if _crosses(trial)]
    groups = by_setting(trials, cases.stem(results.key, "variants-over-time"))
    queues = {stem: _queue(members[0]) for stem, members in groups.items()}
    varies = len(set(queues.values())) > 1
    for stem, members in groups.items():
        across = columns(members, results.rows)
        down = rows(members[0].scenario, across)
        figure = over_time_figure(stem, members, across, down, queues[stem] if varies else "")
        if len(figure.data):
            yield figure


def _queue(trial: Trial) -> str:
    """Name the queue as the experiment's axis does, or by its settings."""
    scenario = trial.scenario
    return scenario.axes.get("queue") or queue_label(scenario.network.bottleneck_queue)


def _data(across: Sequence[Column], down: Sequence[Row]) -> pd.DataFrame:
    """Return the lines as drawn: one for each of a few seeds, median and range of many."""
    tables = [pd.DataFrame(columns=["variant", "measure", "line", "time_s", "value"])]
    for column in across:
        for row in down:
            lines = row.lines(column)
            several = len(lines) > MANY_SEEDS
            low, high = None, None
            if several:
                middle, low, high = _envelope(lines)
                lines = [middle]
            for number, series in enumerate(lines, start=1):
                values = {"time_s": series.time_s, "value": series.value}
                table = pd.DataFrame(values | ({"low": low, "high": high} if several else {}))
                name = row.label.replace("\n", " ")
                tables.append(table.assign(variant=column.variant, measure=name, line=number))
    full = [table for table in tables if len(table)]
    return pd.concat(full, ignore_index=True).dropna(subset="value") if full else tables[0]


def _crosses(trial: Trial) -> bool:
    """Tell whether the flows cross the bottleneck; those to the router itself do not."""
    return all(flow.dst != "router" for flow in trial.scenario.flows)


def over_time_figure(
    stem: str,
    trials: Sequence[Trial],
    across: Sequence[Column],
    down: Sequence[Row],
    queue: str = "",
) -> Figure:
    """Return a figure with a column of panels for each variant and a row for each measure."""
    heading = title(trials[0].scenario, across, queue)
    inches = 1.4 + LABELS_INCHES / sum(row.height for row in down)
    return Figure(
        stem=stem,
        title=heading,
        panels=[
            _row_of_panels(row, across, trials[0].scenario, down.index(row), len(down))
            for row in down
        ],
        caption=heading.replace("\n", " ") + ".",
        reading=OVER_TIME_READING,
        foot=footer(trials, across),
        foot_size=5.5,
        data=_data(across, down),
        row_inches=[inches * row.height for row in down],
        width_inches=max(style.WIDTH_INCHES, 1.4 * len(across)),
    )


def _row_of_panels(
    row: Row, across: Sequence[Column], scenario: Scenario, place: int, rows: int
) -> list[Panel]:
    """Return the panels of a measure, with one range of values, under the columns' names."""
    colours = style.variant_colours(column.variant for column in across)
    marks = [_curves(row.lines(column), colours[column.variant], row.filled) for column in across]
    top, last = row.top or _top_of_curves(marks), place == rows - 1
    x = Axis(
        "time (s)" if last else "",
        limits=(0, scenario.duration_s),
        tick_count=3,
        integer=True,
        names_shown=last,
    )
    panels: list[Panel] = []
    for column, curves in zip(across, marks, strict=True):
        first = not panels
        reference: list[Mark] = []
        if row.reference and not column.reason:
            value, label = row.reference
            reference.append(ReferenceLine("y", value, label=label if first else ""))
        drops = [_drops(column)] if row.drops and not column.reason else []
        y = Axis(row.label if first else "", limits=(0, top), tick_count=4, names_shown=first)
        panel = Panel(
            [*reference, *curves, *drops],
            x,
            y,
            note=row.note(column) if curves else "",
            empty=column.reason if place == 0 else column.reason and " ",
        )
        if place == 0:
            panel = dataclasses.replace(
                panel,
                heading=column.variant,
                heading_colour=colours[column.variant],
                heading_right=column.doubts,
            )
        panels.append(panel)
    return panels


def _curves(lines: list[Series], colour: str, filled: bool) -> list[Curve | Area]:
    """Return a line for one seed, thin lines for a few, for many their median and range."""
    marks: list[Curve | Area] = []
    if len(lines) > MANY_SEEDS:
        middle, low, high = _envelope(lines)
        marks.append(Area(middle.time_s, low, high, colour, opacity=0.25))
        lines = [middle]
    width = 0.9 if len(lines) == 1 else 0.5
    for series in lines:
        measured = np.isfinite(series.value)
        time_s, value = series.time_s[measured], series.value[measured]
        if filled and len(lines) == 1:
            marks.append(Area(time_s, np.zeros(len(value)), value, colour, opacity=0.25))
        marks.append(Curve(time_s, value, colour, width=width, opacity=0.85))
    return marks


def _top_of_curves(marks: Iterable[list[Curve | Area]]) -> float:
    """Return the axis's end: the greatest value, and room for the ticks at the top."""
    ends = [mark.y if isinstance(mark, Curve) else mark.high for curves in marks for mark in curves]
    starts = [
        mark.y if isinstance(mark, Curve) else mark.low for curves in marks for mark in curves
    ]
    high, low = np.nanmax(np.concatenate(ends)), np.nanmin(np.concatenate(starts))
    return float(high + 0.15 * (high - low)) or 1.0


def _drops(column: Column) -> PointSeries:
    """Return a tick at the top for each time at which packets were dropped."""
    times = np.concatenate([np.zeros(0), *(queue.drop_times_s for queue in column.queues)])
    return PointSeries(
        times,
        np.full(len(times), 0.97),
        style.BLACK,
        "|",
        size=3.5,
        edge_width=0.4,
        y_place="panel",
    )


def _envelope(lines: list[Series]) -> tuple[Series, Floats, Floats]:
    """Return median, minimum and maximum over the seeds, where any has a value."""
    table = pd.DataFrame(
        {i: pd.Series(line.value, index=np.round(line.time_s, 6)) for i, line in enumerate(lines)}
    ).dropna(how="all")
    median = Series(table.index.to_numpy(dtype=np.float64), table.median(axis=1).to_numpy())
    return median, table.min(axis=1).to_numpy(), table.max(axis=1).to_numpy()


BOTTLENECK_MEASURES = (
    means.THROUGHPUT,
    Measure("rtt_min_ms", "smallest RTT: idle path (ms)"),
    Measure("rtt_mean_ms", "mean RTT: under load (ms)"),
)


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the flows over time, round trips by path and rate, the plane and the distributions."""
    yield from over_time(results)
    if not results.tcp.empty and f"{AXIS}queue" in results.tcp:
        for case, rows in cases.split(results.tcp, ("path",), ("queue", "variant")):
            yield _round_trips(results, case, rows)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _round_trips(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    variants = sorted(set(rows["variant"]), key=variant_key)
    queues = dict.fromkeys(rows[f"{AXIS}queue"])
    looks = dict(zip(map(str, queues), style.QUEUE_STYLES, strict=False))
    first = next(trial for trial in results.trials if trial.path.name == rows["trial"].iloc[0])
    rate = first.scenario.network.bottleneck_mbit
    panels: list[Panel] = []
    tables = []
    for measure in BOTTLENECK_MEASURES:
        table = means.summary(rows, ["variant", f"{AXIS}queue"], measure)
        tables.append(table.assign(measure=measure.label))
        marks: list[Mark] = []
        if not panels and rows["throughput_mbps"].between(0.8 * rate, 1.2 * rate).all():
            marks.append(ReferenceLine("x", rate))
        for number, (queue, look) in enumerate(looks.items()):
            shift = 0.24 * (number - (len(looks) - 1) / 2)
            for _, cell in table[table[f"{AXIS}queue"] == queue].iterrows():
                place = variants.index(cell["variant"]) + shift
                marks.append(means.mean_point(place, cell, look, queue))
        least = 0 if measure.zero and np.isfinite(table["mean"]).any() else None
        x = Axis(measure.label, limits=(least, None), widen=True)
        panels.append(Panel(marks, x, Axis(names=variants, names_shown=not panels)))
    return Figure(
        stem=cases.stem(results.key, "throughput-of-variants", *case.values()),
        title=_round_trip_message(rows) or _title(rate, case),
        panels=(panels,),
        caption=f"{_title(rate, case)}. {_caption(rows)}".strip(),
        foot=cases.foot(results, rows),
        legend=legend_entries(looks),
        data=pd.concat(tables, ignore_index=True),
        row_inches=0.3 * len(variants) + 0.7,
    )


def _round_trip_message(rows: pd.DataFrame) -> str:
    """Say whose round trips are the shortest and whose the longest behind each queue."""
    statements = list[str]()
    for queue, of_queue in rows.groupby(f"{AXIS}queue", sort=False):
        loads = of_queue.groupby("variant")["rtt_mean_ms"].mean().dropna().sort_values()
        if len(loads) > 1:
            ends = [f"{ms:.3g} ms ({said_name(str(name))})" for name, ms in loads.items()]
            goes = " round trips go" * (not statements)
            statements.append(f"{queue},{goes} from {ends[0]} to {ends[-1]}")
    return f"With {'; with '.join(statements)}." if statements else ""


def _title(rate_mbit: float, case: dict[str, str]) -> str:
    way = f"One flow through {rate_mbit:g} Mbit/s"
    if case.get("path") == "router":
        way = f"One flow, of which only the ACKs pass the {rate_mbit:g} Mbit/s"
    return f"{way}: {cases.case_words(case)}" if case else way


def _caption(rows: pd.DataFrame) -> str:
    sentences = []
    for queue, of_queue in rows.groupby(f"{AXIS}queue", sort=False):
        rates = of_queue.groupby("variant")["throughput_mbps"].mean().dropna()
        loads = of_queue.groupby("variant")["rtt_mean_ms"].mean().dropna()
        if len(rates) > 1 and len(loads) > 1:
            spread = f"throughput from {rates.min():.3g} Mbit/s ({rates.idxmin()}) to "
            spread += f"{rates.max():.3g} ({rates.idxmax()})"
            if rates.max() < 1.01 * rates.min():
                spread = f"each variant's throughput is {rates.min():.3g} Mbit/s"
            sentences.append(
                f"{queue}: {spread}, mean RTT from "
                f"{loads.min():.3g} ({loads.idxmin()}) to {loads.max():.3g} ms ({loads.idxmax()})"
            )
    text = "; ".join(sentences)
    return f"With {text}." if sentences else ""
