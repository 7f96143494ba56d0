"""The figures of the dumbbell: a flow under load, two flows, and queues."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.cases import cell_means
from analysis.figures.figure import (
    Axis,
    Figure,
    Mark,
    Panel,
    ReferenceLine,
    in_rows,
    legend_entries,
    share_limits,
)
from analysis.figures.general import general_figures, load_sweep, messages, over_time, plane
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS, with_axes
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments.kapre_saxena_joshi_hattikar.dumbbell_pairs import PAPER_PAIRS
from experiments.kapre_saxena_joshi_hattikar.simulated import ORACLE, ns2_metrics
from testbed.scenario.model import Profile

LOAD_NAME = "cbr_mbit"
IN_NS2 = "ns-2"  # the part of a figure that is not of our trials


def load_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw one figure per profile and window, with ns-2's; then the general figures."""
    rows = results.tcp
    if not rows.empty and f"{AXIS}{LOAD_NAME}" in rows:
        for case, case_rows in cases.split(
            rows, ("profile", "window"), (LOAD_NAME, "order", "variant")
        ):
            yield _figure(results, case, case_rows)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _figure(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    """Draw throughput, drops and delay over the load: a row per order of starts, and ns-2's."""
    orders = list(cases.split(rows, ("order",), (LOAD_NAME, "variant")))
    parts = [
        (cases.titled("Linux", part if orders[1:] else {}), case_rows) for part, case_rows in orders
    ]
    theirs = _in_ns2(case.get("window", ""))
    if case.get("profile") == Profile.NS2 and len(theirs):
        parts.append((IN_NS2, theirs))
    measures = (means.THROUGHPUT, means.DROPS, means.LATENCY)
    return dataclasses.replace(
        load_sweep.figure(parts, LOAD_NAME, measures, "variant"),
        stem=cases.stem(results.key, "load", *case.values()),
        title=f"One TCP flow against CBR: {cases.case_words(case)}",
        foot=cases.foot(results, rows),
        caption=_load_caption(rows),
    )


def _in_ns2(window: str) -> pd.DataFrame:
    """Return ns-2's TCP flows with this window; no trial of ours is behind them."""
    rows = with_axes(ns2_metrics(ORACLE)["dumbbell-load"].drop(columns="trial"))
    chosen = (rows["flow"] == "tcp") & (rows[f"{AXIS}window"] == window)
    return rows[chosen].assign(verdict="valid")


def _load_caption(rows: pd.DataFrame) -> str:
    """Name the variants with most and least throughput at light, middle and heavy load."""
    sentences = []
    for load in cases.exemplary(sorted(rows[AXIS + LOAD_NAME].unique())):
        there = rows[rows[AXIS + LOAD_NAME] == load]
        rates = cell_means(there, "variant", ("throughput_mbps",))["throughput_mbps"].dropna()
        if len(rates) > 1:
            most, least = str(rates.idxmax()), str(rates.idxmin())
            sentence = (
                f"{most} has most ({rates[most]:.3g} Mbit/s) and {least} least ({rates[least]:.3g})"
            )
            if rates[most] < 1.01 * rates[least]:
                sentence = f"each has {rates[least]:.3g} Mbit/s"
            sentences.append(f"at {load:g} Mbit/s of CBR {sentence}")
    drops = cell_means(rows, "variant", ("drop_rate",))["drop_rate"].dropna()
    text = "; ".join(sentences)
    text = f"{text[:1].upper()}{text[1:]}." if sentences else ""
    if len(drops) > 1:
        text += f" The lowest drop rate is {100 * drops.min():.2g} % of {drops.idxmin()}"
        text += f", the highest {100 * drops.max():.2g} % of {drops.idxmax()}."
    return text


LOAD, PAIR = f"{AXIS}cbr_mbit", f"{AXIS}pair"
PAIRS_OF_FIGURE = 4
TCP_SHARE = means.Measure("share_percent", "share of TCP's goodput (%)")


def pair_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the shares of pairs over load, the papers' first, and the general figures."""
    rows = means.with_goodput_shares(results.tcp)
    if not rows.empty and LOAD in rows and PAIR in rows:
        for case, case_rows in cases.split(
            rows, ("profile", "window", "second"), ("pair", "cbr_mbit")
        ):
            there = dict.fromkeys(case_rows[PAIR])
            pairs = [each for each in PAPER_PAIRS if each in there]
            pairs += [each for each in there if each not in pairs]
            for first in range(0, len(pairs), PAIRS_OF_FIGURE):
                some = pairs[first : first + PAIRS_OF_FIGURE]
                yield _over_load(results, case, case_rows[case_rows[PAIR].isin(some)], some)
    if (
        PAIR not in rows or rows[PAIR].nunique() <= PAIRS_OF_FIGURE
    ):  # of 64 pairs nobody could tell the lines
        yield from general_figures.distributions(results)


def _over_load(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame, pairs: list[str]
) -> Figure:
    """Draw each pair's shares over the load, a line per flow, named at its end."""
    panels: list[Panel] = []
    tables = []
    for pair in pairs:
        of_pair = rows[rows[PAIR] == pair]
        variants = of_pair.drop_duplicates("flow").set_index("flow")["variant"].sort_index()
        looks = style.series_styles(list(variants))
        marks: list[Mark] = [ReferenceLine("y", 50)]
        ends: list[tuple[float, str, str]] = []
        for number, (flow, variant) in enumerate(variants.items()):
            table = means.summary(of_pair[of_pair["flow"] == flow], [LOAD], TCP_SHARE)
            tables.append(table.assign(pair=pair, flow=str(flow), variant=variant))
            look = looks[str(variant)]
            if number and variants.nunique() == 1:
                look = SeriesStyle(look.colour, "D", style.DASHES[1])
            marks += means.line_with_band(table, LOAD, look)
            ends.append((float(table.iloc[-1]["mean"]), f"{variant} ({flow})", look.colour))
        marks += means.line_end_names(ends, (0, 100))
        x = Axis(load_sweep.axis_label("cbr_mbit"), ticks=list(np.sort(of_pair[LOAD].unique())))
        y = Axis("" if len(panels) % 2 else TCP_SHARE.label, limits=(0, 100))
        panels.append(Panel(marks, x, y, title=pair))
    wide = len(panels) > 1
    grid = in_rows(panels, 2 if wide else 1)
    return Figure(
        stem=cases.stem(results.key, "shares", *case.values(), *_not_the_papers(pairs)),
        title=f"Two TCP flows and CBR: {cases.case_words(case)}",
        # the names at the lines' ends stand between the columns
        panels=tuple((row[0], None, row[1]) for row in grid) if wide else grid,
        column_widths=(1, 0.22, 1) if wide else (),
        caption=_pairs_caption(rows, pairs),
        foot=cases.foot(results, rows),
        data=pd.concat(tables, ignore_index=True),
        row_inches=1.9,
        right_inches=0.75,
    )


def _not_the_papers(pairs: list[str]) -> list[str]:
    """Return a part of the name of a figure of other pairs than the papers'."""
    return [] if pairs[0] in PAPER_PAIRS else [pairs[0]]


def _pairs_caption(rows: pd.DataFrame, pairs: list[str]) -> str:
    sentences = []
    for pair in pairs:
        first = rows[(rows[PAIR] == pair) & (rows["flow"] == rows["flow"].min())]
        by = first.groupby(LOAD)["share_percent"].mean().dropna()
        if len(by):
            low, high = f"{by.min():.0f}", f"{by.max():.0f}"
            over = f"{low}–{high} % for the first over the loads"
            sentences.append(f"{pair}: {over if low != high else f'{low} % for the first'}")
    return "; ".join(sentences) + ". The dashed line at 50 % is an even split."


QUEUE = f"{AXIS}queue"
CBR = SeriesStyle(style.GREY, "s")
QUEUE_METRICS = ("drop_rate", "owd_mean_ms")
SHOWN = ("queue", "variant")
ORDER = ("droptail", "red", "codel", "fq_codel", "pie", "cake")


def queue_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw JH's timeline, the measures by queue, and the general figures."""
    if not results.good.empty and QUEUE in results.good:
        for case, rows in cases.split(results.good, ("profile", "cbr_stop"), SHOWN):
            if not results.digest.empty:
                yield _timeline(results, case, rows)
            yield _measures(results, case, rows[rows["kind"] == "tcp"])
    if not results.tcp.empty and QUEUE in results.tcp:
        yield _plane(results)
    yield from general_figures.distributions(results)


def _plane(results: ExperimentResults) -> Figure:
    """Draw throughput against delay with one colour per queue."""
    rows = results.tcp.dropna(subset=[plane.X, plane.Y])
    rows = rows.assign(queue_name=rows[QUEUE])
    known = dict(zip(queues(rows), style.QUEUE_STYLES, strict=False))
    parts = [
        (cases.case_words(case), case_rows)
        for case, case_rows in general_figures.few_cases(
            rows, general_figures.others(rows, "queue", series="queue_name")
        )
    ]
    return dataclasses.replace(
        plane.figure(parts, "queue_name", looks=known),
        stem=cases.stem(results.key, "plane"),
        title=f"{results.experiment}: throughput against delay",
        foot=cases.foot(results, rows, plane.PLANE_READING),
        caption=messages.corner(rows, "queue_name"),
        reading="Throughput and one-way delay at once; up and to the left is better.",
    )


def queues(rows: pd.DataFrame) -> list[str]:
    """List the queues present in the results, the papers' first."""
    known = [name for name in ORDER if (rows[QUEUE] == name).any()]
    return known + sorted(set(rows[QUEUE]) - set(known))


def _timeline(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    """Draw throughput over time: a row per variant, a column per queue."""
    across, column = queues(rows), f"{AXIS}variant"
    down = sorted(set(rows.loc[rows["kind"] == "tcp", "variant"]), key=variant_key)
    looks = style.series_styles(down)
    grid, tables = [], []
    for variant in down:
        line = []
        for queue in across:
            flows = rows[(rows[QUEUE] == queue) & (rows[column] == variant)]
            marks: list[Mark] = []
            for kind, name, look in (("cbr", "cbr", CBR), ("tcp", variant, looks[variant])):
                table = over_time.series(flows[flows["kind"] == kind], results.digest)
                tables.append(table.assign(queue=queue, variant=variant, flow=kind))
                marks += over_time.mean_curve(table, look, name)
            label = ("", f"{variant}\nthroughput (Mbit/s)")[queue == across[0]]
            heading = ("", queue)[variant == down[0]]
            x = Axis(("", "time (s)")[variant == down[-1]], tick_count=5, margin=0)
            line.append(Panel(marks, x, Axis(label, limits=(0, None)), title=heading))
        grid.append(line)
    panels = iter(share_limits([panel for line in grid for panel in line], "y"))
    reading = "1 s bins; lines: mean over the seeds; bands: 95 % interval (Student's t)"
    return Figure(
        stem=cases.stem(results.key, "timeline", *case.values()),
        title=f"TCP and CBR through each queue: {cases.case_words(case)}",
        panels=tuple(tuple(next(panels) for _ in line) for line in grid),
        legend=legend_entries({**looks, "cbr": CBR}),
        row_inches=1.35,
        foot=cases.foot(results, rows, reading),
        caption=_story(results, rows),
        data=pd.concat(tables, ignore_index=True),
    )


def _story(results: ExperimentResults, rows: pd.DataFrame) -> str:
    """Write the timeline's caption: the effect of CBR on TCP, in numbers."""
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
    """Return TCP's mean throughput between two times, by variant and queue."""
    rates = {}
    for (variant, queue), of_variant in rows[rows["kind"] == "tcp"].groupby(["variant", QUEUE]):
        table = over_time.series(of_variant, results.digest)
        within = table[(table["time_s"] > start_s) & (table["time_s"] < stop_s)]["mean"]
        if len(within):
            rates[f"{variant}, {queue}"] = float(within.mean())
    return rates


def _measures(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    """Draw throughput, drops and delay by queue, one queue to a row."""
    names = queues(rows)
    measures = (means.THROUGHPUT, means.DROPS, means.LATENCY)
    by_queue = cell_means(rows.assign(queue_name=rows[QUEUE]), "queue_name", QUEUE_METRICS)
    lost, late = (by_queue[metric].dropna() for metric in QUEUE_METRICS)
    caption = ""
    if len(lost) > 1 and len(late) > 1:
        caption = (
            f"The fewest packets are lost with {lost.idxmin()} ({100 * lost.min():.3g} %), the "
            f"most with {lost.idxmax()} ({100 * lost.max():.3g} %); delay is lowest with "
            f"{late.idxmin()} ({late.min():.3g} ms), highest with {late.idxmax()} "
            f"({late.max():.3g} ms)."
        )
    return dataclasses.replace(
        load_sweep.figure([("", rows)], "queue", measures, "variant", order=names),
        stem=cases.stem(results.key, "queues", *case.values()),
        title=f"TCP by queue: {cases.case_words(case)}",
        row_inches=max(1.5, 0.3 * len(names) + 0.6),
        foot=cases.foot(results, rows),
        caption=caption,
    )
