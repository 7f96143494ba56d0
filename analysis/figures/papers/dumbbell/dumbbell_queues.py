"""Kapre, Saxena 3 and Joshi, Hattikar 3: TCP and CBR through each queue, over time."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.general import general_figures, load_sweep, over_time, plane
from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.cell_means import cell_means
from analysis.figures.plotting.error_bars import DROPS, LATENCY, THROUGHPUT
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.plotting.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key

QUEUE = f"{AXIS}queue"
CBR = SeriesStyle(style.GREY, "s")
METRICS = ("drop_rate", "owd_mean_ms")
SHOWN = ("queue", "variant")
ORDER = ("droptail", "red", "codel", "fq_codel", "pie", "cake")


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """JH's timeline, the measures by queue, and the general figures."""
    if not results.good.empty and QUEUE in results.good:
        for case, rows in cases.split(results.good, ("profile", "cbr_stop"), SHOWN):
            if not results.digest.empty:
                yield _timeline(results, case, rows)
            yield _measures(results, case, rows[rows["kind"] == "tcp"])
    if not results.tcp.empty and QUEUE in results.tcp:
        yield _plane(results)
    yield from general_figures.distributions(results)


def _plane(results: ExperimentResults) -> NamedFigure:
    """One colour per queue, as the queues are what is compared."""
    rows = results.tcp.dropna(subset=[plane.X, plane.Y])
    rows = rows.assign(queue_name=rows[QUEUE])
    known = dict(zip(queues(rows), style.QUEUE_STYLES, strict=False))
    parts = [
        (cases.case_words(case), own)
        for case, own in general_figures.few_cases(
            rows, general_figures.others(rows, "queue", series="queue_name")
        )
    ]
    figure, data = plane.panels(parts, "queue_name", known=known)
    figure_layout.title_and_foot(
        figure,
        f"{results.experiment}: throughput against delay",
        cases.foot(results, rows, plane.READING),
    )
    how = "Throughput and one-way delay at once; up and to the left is better."
    stem = cases.stem(results.key, "plane")
    return NamedFigure(stem, plane.best(rows, "queue_name"), figure, data, how)


def queues(rows: pd.DataFrame) -> list[str]:
    """The queues present in the results, the papers' first."""
    known = [name for name in ORDER if (rows[QUEUE] == name).any()]
    return known + sorted(set(rows[QUEUE]) - set(known))


def _timeline(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    across, column = queues(rows), f"{AXIS}variant"
    down = sorted(set(rows.loc[rows["kind"] == "tcp", "variant"]), key=variant_key)
    known = style.series_styles(down)
    figure, grid = figure_layout.grid(len(down), len(across), panel=1.35, share=True)
    tables = []
    for line, variant in zip(grid, down, strict=True):
        for axes, queue in zip(line, across, strict=True):
            own = rows[(rows[QUEUE] == queue) & (rows[column] == variant)]
            for kind, look in (("cbr", CBR), ("tcp", known[variant])):
                table = over_time.series(own[own["kind"] == kind], results.digest)
                tables.append(table.assign(queue=queue, variant=variant, flow=kind))
                over_time.line(axes, table, look)
            axes.set_ylim(bottom=0)
        line[0].set_ylabel(f"{variant}\nthroughput (Mbit/s)")
    for axes, queue in zip(grid[0], across, strict=True):
        axes.set_title(queue, loc="left", fontweight="bold", fontsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    figure_layout.legend(figure, {**known, "cbr": CBR})
    words = cases.case_words(case)
    reading = "1 s bins; lines: mean over the seeds; bands: 95 % interval (Student's t)"
    figure_layout.title_and_foot(
        figure, f"TCP and CBR through each queue: {words}", cases.foot(results, rows, reading)
    )
    return NamedFigure(
        cases.stem(results.key, "timeline", *case.values()),
        _story(results, rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _story(results: ExperimentResults, rows: pd.DataFrame) -> str:
    """A caption: the effect of the timeline's CBR on TCP, in numbers."""
    scenario = next(t.scenario for t in results.trials if t.path.name == rows["trial"].iloc[0])
    cbr = next((flow for flow in scenario.flows if str(flow.kind) == "cbr"), None)
    if cbr is None:
        return ""
    stop = cbr.start_s + (cbr.duration_s or scenario.duration_s - cbr.start_s)
    text = f"CBR sends {cbr.rate_mbit:g} Mbit/s from {cbr.start_s:g} s to {stop:g} s."
    before = _rates(results, rows, 0.3 * cbr.start_s, cbr.start_s)
    during = _rates(results, rows, cbr.start_s, stop)
    for start, rates in (("Before it", before), ("Meanwhile", during)):
        if rates:
            low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
            text += f" {start} TCP carries from {rates[low]:.3g} Mbit/s ({low})"
            text += f" to {rates[high]:.3g} ({high})."
    return text


def _rates(
    results: ExperimentResults, rows: pd.DataFrame, start_s: float, stop_s: float
) -> dict[str, float]:
    """TCP's mean throughput between two times, by variant and queue."""
    found = {}
    for (variant, queue), own in rows[rows["kind"] == "tcp"].groupby(["variant", QUEUE]):
        table = over_time.series(own, results.digest)
        within = table[(table["time_s"] > start_s) & (table["time_s"] < stop_s)]["mean"]
        if len(within):
            found[f"{variant}, {queue}"] = float(within.mean())
    return found


def _measures(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> NamedFigure:
    place = {name: number for number, name in enumerate(queues(rows))}
    ordered = rows.sort_values(QUEUE, key=lambda c: c.map(place), kind="stable")
    measures = (THROUGHPUT, DROPS, LATENCY)
    parts = [("", ordered)]
    if len(place) > 3:  # names of six queues stand upright in no third of a page
        figure, data = _down(ordered, list(place), measures)
    else:
        figure, data = load_sweep.panels(parts, "queue", measures, "variant")
    figure_layout.title_and_foot(
        figure, f"TCP by queue: {cases.case_words(case)}", cases.foot(results, rows)
    )
    means = cell_means(rows.assign(queue_name=rows[QUEUE]), "queue_name", METRICS)
    lost, late = (means[metric].dropna() for metric in METRICS)
    caption = ""
    if len(lost) > 1 and len(late) > 1:
        caption = (
            f"The fewest packets are lost with {lost.idxmin()} ({100 * lost.min():.3g} %), the "
            f"most with {lost.idxmax()} ({100 * lost.max():.3g} %); delay is lowest with "
            f"{late.idxmin()} ({late.min():.3g} ms), highest with {late.idxmax()} "
            f"({late.max():.3g} ms)."
        )
    return NamedFigure(cases.stem(results.key, "queues", *case.values()), caption, figure, data)


def _down(
    rows: pd.DataFrame, order: list[str], measures: tuple[error_bars.Measure, ...]
) -> tuple[Figure, pd.DataFrame]:
    """One line per queue, one panel per measure."""
    known = style.series_styles(list(rows["variant"]))
    figure, [line] = figure_layout.grid(1, len(measures), panel=0.3 * len(order) + 0.6)
    tables = []
    for axes, measure in zip(line, measures, strict=True):
        table = error_bars.summary(rows, ["variant", QUEUE], measure)
        tables.append(table.assign(measure=measure.label))
        for number, (variant, look) in enumerate(known.items()):
            for _, cell in table[table["variant"] == variant].iterrows():
                shift = 0.22 * (number - (len(known) - 1) / 2)
                error_bars.point(axes, order.index(cell[QUEUE]) + shift, cell, look)
        axes.set_yticks(range(len(order)), order if axes is line[0] else [""] * len(order))
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(measure.label)
        axes.tick_params(axis="y", length=0)
    line[1].set_xlim(left=0)
    figure_layout.legend(figure, known)
    return figure, pd.concat(tables, ignore_index=True)
