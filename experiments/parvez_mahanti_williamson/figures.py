"""The figures of NewReno's two forms: under loss events, and among sessions."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.figures import cases, means, static_renderer, style
from analysis.figures.figure import (
    Annotation,
    Area,
    Axis,
    Curve,
    Dash,
    Figure,
    Floats,
    LegendEntry,
    Mark,
    Panel,
    PointEvidence,
    PointSeries,
    ReferenceLine,
    ShadedRange,
    legend_entries,
    share_limits,
)
from analysis.figures.general import general_figures
from analysis.figures.means import Measure
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from experiments.parvez_mahanti_williamson.claims import IMP, NEWRENO_NAMES, SBS
from experiments.parvez_mahanti_williamson.models import (
    Regions,
    imp_window,
    sbs_most_losses,
    with_model,
)
from experiments.parvez_mahanti_williamson.printed import (
    PMW_CROSSING_OF_WINDOW,
    PMW_CROSSINGS,
    PMW_FIRST_IMPATIENT,
    PMW_GONE_FROM,
    PMW_MODEL_ERRORS,
    PMW_RTT_S,
    PMW_TABLE_2,
    PMW_THIN_FROM,
)


def _means_and_model(
    rows: pd.DataFrame,
    axis: str,
    measure: Measure,
    looks: Mapping[str, SeriesStyle],
    model: str = "",
) -> tuple[list[Mark], pd.DataFrame]:
    """Return the forms' means as points, their models' column as lines, and the means' table."""
    table = means.summary(rows, ["variant", AXIS + axis], measure)
    marks: list[Mark] = []
    for variant, look in looks.items():
        points = table[table["variant"] == variant]
        marks.append(
            PointSeries(
                points[AXIS + axis],
                points["mean"],
                look.colour,
                look.marker,
                size=4.5,
                edge_width=0.8,
                hollow=list(points["suspect"] > 0),
                low=list(points["low"]),
                high=list(points["high"]),
                series=NEWRENO_NAMES[variant],
                evidence=PointEvidence.from_table(points),
            )
        )
        if model:  # no line where the model does not hold
            flows = rows[rows["variant"] == variant]
            expected = flows.groupby(AXIS + axis)[model].mean()
            marks.append(
                Curve(expected.index, expected, look.colour, 1.1, series=NEWRENO_NAMES[variant])
            )
    return marks, table


def _legend(looks: Mapping[str, SeriesStyle]) -> tuple[LegendEntry, ...]:
    return legend_entries({NEWRENO_NAMES[variant]: look for variant, look in looks.items()})


# ---- figure 2: under loss events

LOSSES_COLUMN, CHANCE = "m", "p_percent"
GOODPUT_MEASURE = Measure("goodput_mbps", "goodput (Mbit/s)")
MODEL_ERROR = Measure("model_error", "model above flow (%)", 100, zero=False)
SHOWN_LOSS_AXES = (LOSSES_COLUMN, "dropper", "variant")
EVENT_TITLES = {"random": "random events, as in the paper", "even": "evenly spaced events"}
EVENTS_READING = "dashed: from here on Impatient is better in the paper"
EVENTS_HOW = (
    "Above: what arrived (points: means with 95 % intervals, Student's t) and what the models "
    "expect of each flow's own p, m, round trip and timer (lines). Below: by how much the model "
    "is above the flow; bands are the errors that the paper prints."
)


def event_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Yield figure 2 for each rate of loss events, figure 4, and the general figures."""
    rows = results.tcp
    if not rows.empty and AXIS + LOSSES_COLUMN in rows:
        rows = with_model(rows)
        per_pps = rows["goodput_mbps"] / rows["goodput_pps"]
        rows = rows.assign(expected_mbps=rows["expected_pps"] * per_pps)
        for case, members in cases.split(rows, (CHANCE,), SHOWN_LOSS_AXES):
            if members[AXIS + LOSSES_COLUMN].nunique() > 1:
                yield _throughput(results, case, members)
        yield from _measured_regions(results, rows)
    yield from general_figures.distributions(results)


def _throughput(results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame) -> Figure:
    looks = style.series_styles(list(rows["variant"].unique()))
    p = float(case[CHANCE]) / 100
    columns: list[tuple[Panel, Panel]] = []
    tables = []
    for dropper in (each for each in EVENT_TITLES if each in set(rows[AXIS + "dropper"])):
        flows = rows[rows[AXIS + "dropper"] == dropper]
        upper, goodputs = _means_and_model(
            flows, LOSSES_COLUMN, GOODPUT_MEASURE, looks, "expected_mbps"
        )
        lower, errors = _means_and_model(flows, LOSSES_COLUMN, MODEL_ERROR, looks)
        tables.append(goodputs.assign(dropper=dropper, measure=GOODPUT_MEASURE.label))
        tables.append(errors.assign(dropper=dropper, measure=MODEL_ERROR.label))
        if p in PMW_FIRST_IMPATIENT:
            upper.append(ReferenceLine("x", PMW_FIRST_IMPATIENT[p], colour=style.BLACK))
        lower.append(ReferenceLine("y", 0, colour=style.BLACK, width=0.6, dash=()))
        for variant, look in looks.items():
            if (variant, p) in PMW_MODEL_ERRORS:
                most = 100 * PMW_MODEL_ERRORS[variant, p][1]
                lower.append(
                    ShadedRange("y", -most, most, look.colour, 0.12, series=NEWRENO_NAMES[variant])
                )
        first = not columns
        above = Axis(GOODPUT_MEASURE.label if first else "", limits=(0, None), tick_count=7)
        below = Axis(MODEL_ERROR.label if first else "", tick_count=7)
        columns.append(
            (
                Panel(upper, y=above, title=EVENT_TITLES[dropper]),
                Panel(lower, Axis("losses per event, m"), below),
            )
        )
    data = pd.concat(tables, ignore_index=True)
    return Figure(
        stem=cases.stem(results.key, "events", *case.values()),
        title=f"NewReno under loss events (p, m): {cases.case_words(case)}",
        panels=tuple(share_limits(row, "y") for row in zip(*columns, strict=True)),
        caption=_events_caption(rows),
        reading=EVENTS_HOW,
        foot=cases.foot(results, rows, EVENTS_READING),
        legend=_legend(looks),
        data=data.sort_values(["dropper", "variant"], kind="stable"),
        row_inches=1.9,
    )


def _events_caption(rows: pd.DataFrame) -> str:
    """Write the models' errors, and the m from which Impatient leads."""
    sentences = []
    for dropper, flows in rows.groupby(AXIS + "dropper", sort=False):
        errors = (
            100 * flows.groupby(["variant", AXIS + LOSSES_COLUMN])["model_error"].mean().dropna()
        )
        if errors.empty:
            continue
        sentence = (
            f"With {dropper} events the models are {errors.min():+.1f} to {errors.max():+.1f}"
        )
        goodput = flows.groupby([AXIS + LOSSES_COLUMN, "variant"])["goodput_mbps"].mean().unstack()
        turns = []
        if {SBS, IMP} == set(goodput):
            leads = pairwise((goodput[IMP] > goodput[SBS]).items())
            turns = [m for (_, before), (m, after) in leads if after > before]
        lead = f", and Impatient comes to lead from m = {turns[-1]:g} on" if turns else ""
        sentences.append(f"{sentence} % off{lead}.")
    return " ".join(sentences)


# ---- figure 4: the map of the better form

MIN_RTO_S = 0.2  # ns-2's
TIMEOUT_S = 0.31  # what ns-2's timeouts last from the loss event on, less a round trip
RATES = (0.0002, 0.05)  # of loss events: the map's width
MAX_MAPPED_LOSSES = 100  # the map's height
RATE_TICKS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LOSS_TICKS = (1, 2, 4, 10, 20, 40, 100)
AREA_OPACITY, AREA_ALPHA = 0.35, "59"  # lines and letters stand on them; as a colour's suffix
CROSSING_DASHES = ((), (1, 1.65), (6.4, 1.6, 1, 1.6))  # by timer
PAPER_MARKS: dict[str, tuple[str, Mapping[float, float]]] = {
    "paper: mₜ (Fig. 4)": ("o", PMW_CROSSINGS),
    "paper: Impatient better from (Fig. 2)": ("x", PMW_FIRST_IMPATIENT),
    "paper: 1/3 and 1/2 of W(IMP)": (
        "^",
        {p: part * imp_window(p) for p, part in PMW_CROSSING_OF_WINDOW.items()},
    ),
}


def regions_figure(stem: str, by_timer: Mapping[str, Regions], caption: str = "") -> Figure:
    """Return the map by the first timer, with the crossing mₜ by the others."""
    regions = next(iter(by_timer.values()))
    rates = np.geomspace(*RATES, 300)
    critical = np.full_like(rates, regions.critical)
    steady_window = np.array([sbs_most_losses(p) for p in rates])
    steady_end = np.array([regions.sbs_end(p) for p in rates])
    impatient_end = np.array([regions.imp_end(p) for p in rates])
    equal_end = np.minimum(critical, steady_window)
    impatient_start = np.maximum(critical, steady_end)
    marks: list[Mark] = []
    legend = []
    for name, low, high, colour, hatch in (
        ("equal: m < m*", np.ones_like(rates), equal_end, style.GREY, ""),
        ("Slow-but-Steady better", critical, steady_end, style.SKY, ""),
        ("Impatient better", impatient_start, impatient_end, style.ORANGE, "////"),
    ):
        marks.append(Area(rates, low, np.maximum(low, high), colour, AREA_OPACITY, hatch=hatch,
                          series=name))  # fmt: skip
        legend.append(LegendEntry(name, colour + AREA_ALPHA, kind="area", hatch=hatch))
    lines: list[tuple[str, Floats, str, Dash]] = [
        ("W(IMP) − 3", impatient_end, style.VERMILLION, ()),
        ("W(SBS) − 3", steady_window, style.BLUE, (3.7, 1.6)),
    ]
    for timer, dash in zip(by_timer.values(), CROSSING_DASHES, strict=False):
        name = f"mₜ with RTO {timer.rto_rtts:.2f} RTT"
        lines.append((name, np.array([timer.crossing(p) for p in rates]), style.BLACK, dash))
    for name, losses, colour, dash in lines:
        marks.append(Curve(rates, losses, colour, 1.4, dash, series=name))
        legend.append(LegendEntry(name, colour, dash=dash, width=1.4))
    for name, (marker, points) in PAPER_MARKS.items():
        marks.append(PointSeries(list(points), list(points.values()), style.INDIGO, marker, 5,
                                 hollow=True, edge_width=1, series=name))  # fmt: skip
        legend.append(LegendEntry(name, style.INDIGO, marker, kind="points", hollow=True))
    for rate, word in ((PMW_THIN_FROM, "very thin"), (PMW_GONE_FROM, "vanish")):
        marks.append(ReferenceLine("x", rate, dash=()))
        marks.append(Annotation(f"paper: “{word}”", rate, 1, y_place="panel", rotation=90,
                                offset_points=(-2, -3), across="right", up="top"))  # fmt: skip
    marks.append(Annotation("direct timeouts", 0.0028, 60, size=6.5, across="center"))
    x = Axis(
        "loss event rate p (% of segments)",
        *("log", RATES, RATE_TICKS),
        tick_labels=[f"{100 * rate:g}" for rate in RATE_TICKS],
    )
    y = Axis("losses per event m (segments)", "log", (1, MAX_MAPPED_LOSSES), LOSS_TICKS)
    data = pd.DataFrame(
        {"p": p, "timer": name, "m_t": timer.crossing(p), "imp_end": timer.imp_end(p)}
        for name, timer in by_timer.items()
        for p in np.geomspace(*RATES, 60)
    )
    return Figure(
        stem=stem,
        title="NewReno's two forms, by PMW's equations: "
        f"RTO {regions.rto_rtts:.2f} RTT, m* = {regions.critical}",
        panels=((Panel(marks, x, y),),),
        caption=caption,
        legend=legend,
        legend_beside=True,
        row_inches=3.7,
        data=data,
    )


def _measured_regions(results: ExperimentResults, rows: pd.DataFrame) -> Iterator[Figure]:
    """Yield the map by the timer and the round trip of Impatient's flows, if any had a timeout."""
    flows = rows[rows["variant"] == IMP]
    ratio = float((flows["rto_at_timeout_ms"] / flows["srtt_mean_ms"]).median())
    if not math.isfinite(ratio):  # short trials may have no sample of the round-trip time
        return
    regions = Regions(ratio)
    turns = " and ".join(
        f"m = {regions.crossing(p):.1f} for p = {p:.2%}" for p in PMW_FIRST_IMPATIENT
    )
    caption = (
        "Which form is better where, by the equations with the timer and the round trip that were "
        f"measured ({ratio:.2f} round trips, m* = {regions.critical}): they cross at {turns}."
    )
    yield regions_figure(cases.stem(results.key, "regions"), {"measured": regions}, caption)


# ---- figure 3: among web sessions and long transfers

SESSIONS_COLUMN = "sessions"
GOODPUT_PER_RTT = Measure("segments_a_rtt", "goodput (segments/RTT)")
PANELS = {  # the measure's axis and the paper's numbers
    GOODPUT_PER_RTT: (
        Axis(GOODPUT_PER_RTT.label, "log"),
        [row.simulated for row in PMW_TABLE_2],
    ),
    Measure("loss_event_rate", "loss events (% of segments)", 100): (
        Axis("loss events (% of segments)", "log"),
        [100 * row.loss_event_rate for row in PMW_TABLE_2],
    ),
    Measure("losses_per_event", "losses per event"): (
        Axis("losses per event", limits=(1, None), tick_count=7),
        [row.loss_rate / row.loss_event_rate for row in PMW_TABLE_2],
    ),
}
PAPER_ENTRY = LegendEntry("the paper's table II", style.BLACK, "x", kind="points", size=3.5)
BACKGROUND_READING = "lines: the models"
BACKGROUND_HOW = (
    "Points are means with 95 % intervals (Student's t); lines are what the models expect of each "
    "flow's own p, m, round trip and timer."
)


def background_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Yield goodput, p and m over the number of sessions, and the general figures."""
    rows = results.tcp
    if not rows.empty and AXIS + SESSIONS_COLUMN in rows:
        rows = with_model(rows)
        rtt_s = rows["srtt_mean_ms"] / 1e3  # the paper's unit is a segment per round trip
        yield _among_sessions(
            results,
            rows.assign(
                segments_a_rtt=rows["goodput_pps"] * rtt_s,
                expected_a_rtt=rows["expected_pps"] * rtt_s,
            ),
        )
    yield from general_figures.distributions(results)


def _among_sessions(results: ExperimentResults, rows: pd.DataFrame) -> Figure:
    """Return a row of panels for each queue; the paper's numbers are of DropTail."""
    looks = style.series_styles(list(rows["variant"].unique()))
    queues = list(cases.split(rows, ("queue",), (SESSIONS_COLUMN,)))
    grid: list[list[Panel]] = []
    tables, leads = [], []
    for case, flows in queues:
        setting = cases.case_words(case)
        panels: list[Panel] = []
        for measure, (axis, printed) in PANELS.items():
            model = "expected_a_rtt" if measure is GOODPUT_PER_RTT else ""
            marks, table = _means_and_model(flows, SESSIONS_COLUMN, measure, looks, model)
            tables.append(table.assign(part=setting, measure=measure.label))
            if "droptail" in setting:
                sessions = [row.flows for row in PMW_TABLE_2]
                marks.append(PointSeries(sessions, printed, style.BLACK, "x", 3.5, edge_width=0.8,
                                         series=PAPER_ENTRY.name))  # fmt: skip
            label = "background sessions" if len(grid) == len(queues) - 1 else ""
            x = Axis(label, "log", ticks=(4, 16, 64, 256))
            panels.append(Panel(marks, x, axis, title="" if panels else setting))
        grid.append(panels)
        goodput = (
            flows.groupby([AXIS + SESSIONS_COLUMN, "variant"])["goodput_mbps"].mean().unstack()
        )
        if {SBS, IMP} == set(goodput) and len(goodput := goodput.dropna()):
            lead = 100 * (goodput[SBS] / goodput[IMP] - 1)
            leads.append(
                f"with {setting} Slow-but-Steady is {lead.min():+.1f} to {lead.max():+.1f} % ahead "
                "of Impatient"
            )
    caption = "; ".join(leads)
    return Figure(
        stem=cases.stem(results.key, "sessions"),
        title="NewReno among web sessions and long transfers",
        panels=grid,
        caption=f"{caption[0].upper()}{caption[1:]}." if caption else "",
        reading=BACKGROUND_HOW,
        foot=cases.foot(results, rows, BACKGROUND_READING),
        legend=(*_legend(looks), PAPER_ENTRY),
        data=pd.concat(tables, ignore_index=True),
        row_inches=1.9,
    )


if __name__ == "__main__":
    ns2_timers = {"least RTO": MIN_RTO_S, "timeouts": TIMEOUT_S}
    ns2_regions = {name: Regions(timer_s / PMW_RTT_S) for name, timer_s in ns2_timers.items()}
    static_renderer.save(regions_figure("pmw-regions", ns2_regions), Path(sys.argv[1]))
