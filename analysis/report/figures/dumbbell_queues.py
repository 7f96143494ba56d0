"""Kapre, Saxena 3 and Joshi, Hattikar 3: TCP and CBR through each queue, over time."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import style
from analysis.labels import variant_key
from analysis.report.figures import base, general, overtime, plane, sweep
from analysis.report.figures.base import DROPS, LATENCY, THROUGHPUT, Drawn, Look
from analysis.report.material import AXIS, Material

QUEUE = f"{AXIS}queue"
CBR = Look(style.GREY, "s")
ORDER = ("droptail", "red", "codel", "fq_codel", "pie", "cake")


def draw(material: Material) -> Iterator[Drawn]:
    """JH's timeline, the measures by queue, and the general figures."""
    if not material.good.empty and QUEUE in material.good:
        for case, rows in base.cases(material.good, ("profile",)):
            if not material.digest.empty:
                yield _timeline(material, case, rows)
            yield _measures(material, case, rows[rows["kind"] == "tcp"])
    if not material.tcp.empty and QUEUE in material.tcp:
        yield _plane(material)
    yield from general.distributions(material)


def _plane(material: Material) -> Drawn:
    """A colour a queue: the queues are what is compared."""
    rows = material.tcp.dropna(subset=[plane.X, plane.Y])
    rows = rows.assign(queue_name=rows[QUEUE])
    known = dict(zip(queues(rows), base.QUEUE_LOOKS, strict=False))
    parts = [
        (base.case_words(case), own)
        for case, own in general.few_cases(rows, ("profile", "variant"))
    ]
    figure, data = plane.panels(parts, "queue_name", known=known)
    base.words(
        figure,
        f"{material.experiment}: throughput against delay",
        base.foot(material, rows, plane.READING),
    )
    how = "Throughput and one-way delay at once; up and to the left is better."
    stem = base.stem(material.key, "plane")
    return Drawn(stem, plane.best(rows, "queue_name"), figure, data, how)


def queues(rows: pd.DataFrame) -> list[str]:
    """Those there are, the papers' first."""
    known = [name for name in ORDER if (rows[QUEUE] == name).any()]
    return known + sorted(set(rows[QUEUE]) - set(known))


def _timeline(material: Material, case: dict[str, str], rows: pd.DataFrame) -> Drawn:
    across, column = queues(rows), f"{AXIS}variant"
    down = sorted(set(rows.loc[rows["kind"] == "tcp", "variant"]), key=variant_key)
    known = base.looks(down)
    figure, grid = base.grid(len(down), len(across), panel=1.35, share=True)
    tables = []
    for line, variant in zip(grid, down, strict=True):
        for axes, queue in zip(line, across, strict=True):
            own = rows[(rows[QUEUE] == queue) & (rows[column] == variant)]
            for kind, look in (("cbr", CBR), ("tcp", known[variant])):
                table = overtime.series(own[own["kind"] == kind], material.digest)
                tables.append(table.assign(queue=queue, variant=variant, flow=kind))
                overtime.line(axes, table, look)
            axes.set_ylim(bottom=0)
        line[0].set_ylabel(f"{variant}\nthroughput (Mbit/s)")
    for axes, queue in zip(grid[0], across, strict=True):
        axes.set_title(queue, loc="left", fontweight="bold", fontsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    base.legend(figure, {**known, "cbr": CBR})
    words = base.case_words(case)
    reading = "1 s bins; lines: mean over the seeds; bands: 95 % interval (Student's t)"
    base.words(
        figure, f"TCP and CBR through each queue: {words}", base.foot(material, rows, reading)
    )
    return Drawn(
        base.stem(material.key, "timeline", *case.values()),
        _story(material, rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _story(material: Material, rows: pd.DataFrame) -> str:
    """What the timeline's CBR does to TCP, in numbers."""
    found = [flow for t in material.trials for flow in t.scenario.flows if str(flow.kind) == "cbr"]
    if not found or rows.empty:
        return ""
    cbr = found[0]
    stop = cbr.start_s + (cbr.duration_s or material.trials[0].scenario.duration_s - cbr.start_s)
    table = overtime.series(rows[rows["kind"] == "tcp"], material.digest)
    during = table[(table["time_s"] > cbr.start_s) & (table["time_s"] < stop)]
    text = f"CBR sends {cbr.rate_mbit:g} Mbit/s from {cbr.start_s:g} s to {stop:g} s. "
    if len(during):
        text += f"Meanwhile TCP carries {during['mean'].mean():.3g} Mbit/s on average"
        before = table[(table["time_s"] > 0.3 * cbr.start_s) & (table["time_s"] < cbr.start_s)]
        if len(before):
            text += f", {before['mean'].mean():.3g} Mbit/s before it"
        text += " (over all queues and variants)."
    return text


def _measures(material: Material, case: dict[str, str], rows: pd.DataFrame) -> Drawn:
    place = {name: number for number, name in enumerate(queues(rows))}
    ordered = rows.sort_values(QUEUE, key=lambda c: c.map(place), kind="stable")
    measures = (THROUGHPUT, DROPS, LATENCY)
    parts = [("", ordered)]
    if len(place) > 3:  # names of six queues stand upright in no third of a page
        figure, data = _down(ordered, list(place), measures)
    else:
        figure, data = sweep.panels(parts, "queue", measures, "variant")
    base.words(figure, f"TCP by queue: {base.case_words(case)}", base.foot(material, rows))
    lost = rows.groupby(QUEUE)["drop_rate"].mean().dropna()
    late = rows.groupby(QUEUE)["owd_mean_ms"].mean().dropna()
    caption = ""
    if len(lost) > 1 and len(late) > 1:
        caption = (
            f"Least is lost with {lost.idxmin()} ({100 * lost.min():.3g} %), most with "
            f"{lost.idxmax()} ({100 * lost.max():.3g} %); delay is least with {late.idxmin()} "
            f"({late.min():.3g} ms), most with {late.idxmax()} ({late.max():.3g} ms)."
        )
    return Drawn(base.stem(material.key, "queues", *case.values()), caption, figure, data)


def _down(
    rows: pd.DataFrame, order: list[str], measures: tuple[base.Measure, ...]
) -> tuple[Figure, pd.DataFrame]:
    """A line a queue, a panel a measure."""
    known = base.looks(list(rows["variant"]))
    figure, [line] = base.grid(1, len(measures), panel=0.3 * len(order) + 0.6)
    tables = []
    for axes, measure in zip(line, measures, strict=True):
        table = base.summary(rows, ["variant", QUEUE], measure)
        tables.append(table.assign(measure=measure.label))
        for number, (variant, look) in enumerate(known.items()):
            for _, cell in table[table["variant"] == variant].iterrows():
                shift = 0.22 * (number - (len(known) - 1) / 2)
                base.dot(axes, order.index(cell[QUEUE]) + shift, cell, look)
        axes.set_yticks(range(len(order)), order if axes is line[0] else [""] * len(order))
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.set_xlabel(measure.label)
        axes.tick_params(axis="y", length=0)
    line[1].set_xlim(left=0)
    base.legend(figure, known)
    return figure, pd.concat(tables, ignore_index=True)
