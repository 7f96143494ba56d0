"""The figures of NewReno's two forms: under loss events, and among sessions."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from analysis.figures import cases, style
from analysis.figures.general import general_figures
from analysis.figures.plotting import error_bars, figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure, save
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
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

TIMER_S = 0.2  # ns-2's least RTO
MEASURED_S = 0.31  # what ns-2's timeouts last from the loss event on, less a round trip
RATES = (0.0002, 0.05)  # of loss events: the map's width
CURVE_LOSSES = (1, 100)
RATE_TICKS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LOSS_TICKS = (1, 2, 4, 10, 20, 40, 100)
POINTS = 600  # of a curve
PALE = 0.35  # of the areas: lines and letters stand on them


def draw_curves(folder: Path, regions: Regions, beside: Sequence[Regions] = ()) -> list[Path]:
    """The map, with m_t for other ratios of RTO to RTT beside; PNG and SVG in the folder."""
    with style.style_sheet():
        return save(chart(regions, beside), folder, "pmw-regions")


def chart(regions: Regions, beside: Sequence[Regions] = ()) -> Figure:
    """The map as a figure."""
    figure = Figure(figsize=(style.WIDTH_INCHES, 3.9), layout="constrained")
    axes = figure.subplots()
    _areas(axes, regions)
    _bounds(axes, regions, beside)
    _anchors(axes)
    _frame(axes, regions)
    figure.legend(loc="outside right upper", fontsize=6, frameon=False)
    return figure


def _areas(axes: Axes, regions: Regions) -> None:
    rates = np.geomspace(*RATES, POINTS)
    critical = np.full_like(rates, regions.critical)
    equal = np.array([min(regions.critical, sbs_most_losses(p)) for p in rates])
    steady = np.array([regions.sbs_end(p) for p in rates])
    impatient = np.array([regions.imp_end(p) for p in rates])
    for low, high, colour, hatch, label in (
        (np.ones_like(rates), equal, style.GREY, "", "equal: m < m*"),
        (critical, steady, style.SKY, "", "Slow-but-Steady better"),
        (np.maximum(critical, steady), impatient, style.ORANGE, "////", "Impatient better"),
    ):
        axes.fill_between(
            rates,
            low,
            np.maximum(low, high),
            facecolor=colour,
            alpha=PALE,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=label,
        )


def _bounds(axes: Axes, regions: Regions, beside: Sequence[Regions]) -> None:
    rates = np.geomspace(*RATES, POINTS)
    axes.plot(
        rates, [regions.imp_end(p) for p in rates], color=style.VERMILLION, label=r"$W_{IMP}-3$"
    )
    axes.plot(
        rates, [sbs_most_losses(p) for p in rates], color=style.BLUE, ls="--", label=r"$W_{SBS}-3$"
    )
    for each, line in zip((regions, *beside), ("-", ":", "-."), strict=False):
        crossings = [each.crossing(p) for p in rates]
        label = f"$m_t$ with RTO {each.rto_rtts:.2f} RTT"
        axes.plot(rates, crossings, color=style.BLACK, ls=line, label=label)


def _anchors(axes: Axes) -> None:
    """The points that the paper prints."""
    thirds = {p: part * imp_window(p) for p, part in PMW_CROSSING_OF_WINDOW.items()}
    look = {"color": style.INDIGO, "markersize": 5, "markerfacecolor": "none"}
    for marks, shape, label in (
        (PMW_CROSSINGS, "o", "paper: $m_t$ (Fig. 4)"),
        (PMW_FIRST_IMPATIENT, "x", "paper: Impatient better from (Fig. 2)"),
        (thirds, "^", "paper: 1/3 and 1/2 of $W_{IMP}$"),
    ):
        axes.plot(list(marks), list(marks.values()), shape, label=label, **look)  # type: ignore[arg-type]
    for rate, text in ((PMW_THIN_FROM, "“very thin”"), (PMW_GONE_FROM, "“vanish”")):
        axes.axvline(rate, color=style.GREY, linewidth=0.7)
        axes.annotate(
            f"paper: {text}",
            (rate, CURVE_LOSSES[1]),
            xytext=(-2, -3),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=6,
        )


def _frame(axes: Axes, regions: Regions) -> None:
    axes.set(xscale="log", yscale="log", xlim=RATES, ylim=CURVE_LOSSES)
    axes.xaxis.set_major_locator(FixedLocator(RATE_TICKS))
    axes.yaxis.set_major_locator(FixedLocator(LOSS_TICKS))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda rate, _: f"{100 * rate:g}")
    axes.yaxis.set_major_formatter(lambda losses, _: f"{losses:g}")
    axes.set_xlabel("loss event rate p (% of segments)")
    axes.set_ylabel("losses per event m (segments)")
    axes.set_title(
        f"NewReno's two forms, by PMW's equations: RTO {regions.rto_rtts:.2f} RTT,"
        f" m* = {regions.critical}",
        loc="left",
    )
    axes.text(0.0028, 60, "direct timeouts", fontsize=6.5, ha="center")


LOSSES, CHANCE = "m", "p_percent"
GOODPUT = Measure("goodput_mbps", "goodput (Mbit/s)")
ERROR = Measure("model_error", "model above flow (%)", 100, zero=False)
SHOWN = (LOSSES, CHANCE, "variant")
IMPATIENT = "newreno-impatient"
EVENTS_READING = "dashed: from here on Impatient is better in the paper"


def event_figures(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Figure 2 for each timer and dropper, figure 4 by the timer that was measured; then the
    general ones.
    """
    rows = results.tcp
    if not rows.empty and AXIS + LOSSES in rows:
        rows = _with_event_models(rows)
        for case, own in cases.split(rows, ("timer", "dropper"), SHOWN):
            if own[AXIS + LOSSES].nunique() > 1:
                yield _throughput(results, case, own)
        yield from _regions(results, rows)
    yield from general_figures.distributions(results)


def _with_event_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the models' predictions, with throughput also in the goodput's unit."""
    found = with_model(rows)
    per_pps = found["goodput_mbps"] / found["goodput_pps"]
    return found.assign(expected_mbps=found["expected_pps"] * per_pps)


def _throughput(
    results: ExperimentResults, case: dict[str, str], rows: pd.DataFrame
) -> NamedFigure:
    chances = sorted(rows[AXIS + CHANCE].unique())
    figure, grid = figure_layout.grid(2, len(chances), panel=1.9)
    known = style.series_styles(list(rows["variant"].unique()))
    tables = []
    for column, p_percent in enumerate(chances):
        own = rows[rows[AXIS + CHANCE] == p_percent]
        upper, lower = grid[0][column], grid[1][column]
        upper.set_title(f"p = {p_percent:g} %", loc="left", fontweight="bold", fontsize=7)
        for variant, look in known.items():
            flows = own[own["variant"] == variant]
            for axes, measure in ((upper, GOODPUT), (lower, ERROR)):
                table = error_bars.summary(flows, ["variant", AXIS + LOSSES], measure)
                tables.append(table.assign(p_percent=p_percent, measure=measure.label))
                _points(axes, table, look)
            _model(upper, flows, look)
            _paper_band(lower, variant, p_percent / 100, look)
        _turn(upper, p_percent / 100)
        upper.set_ylim(bottom=0)
        lower.axhline(0, color="black", linewidth=0.6)
        lower.set_xlabel("losses per event, m")
    grid[0][0].set_ylabel(GOODPUT.label)
    grid[1][0].set_ylabel(ERROR.label)
    figure_layout.legend(figure, known)
    words = cases.case_words(case)
    figure_layout.title_and_foot(
        figure,
        f"NewReno under loss events (p, m): {words}",
        cases.foot(results, rows, EVENTS_READING),
    )
    stem = cases.stem(results.key, "events", *case.values())
    how = (
        "Above: what arrived (points: means with 95 % intervals, Student's t) and what the models "
        "expect of each flow's own p, m, round trip and timer (lines). Below: by how much the "
        "model is above the flow; bands are the errors that the paper prints."
    )
    return NamedFigure(
        stem, _events_caption(rows), figure, pd.concat(tables, ignore_index=True), how
    )


def _points(axes: Axes, table: pd.DataFrame, look: style.SeriesStyle) -> None:
    for _, cell in table.iterrows():
        error_bars.point(axes, float(cell[AXIS + LOSSES]), cell, look, across=False)


def _model(axes: Axes, flows: pd.DataFrame, look: style.SeriesStyle) -> None:
    """NamedFigure where it holds, without a line over where it does not."""
    means = flows.groupby(AXIS + LOSSES)["expected_mbps"].mean()
    axes.plot(means.index, means.to_numpy(), color=look.colour, linewidth=1.1)


def _paper_band(axes: Axes, variant: str, p: float, look: style.SeriesStyle) -> None:
    bounds = PMW_MODEL_ERRORS.get((variant, p))
    if bounds:
        most = 100 * bounds[1]
        axes.axhspan(-most, most, color=look.colour, alpha=0.12, linewidth=0)


def _turn(axes: Axes, p: float) -> None:
    if p in PMW_FIRST_IMPATIENT:
        axes.axvline(PMW_FIRST_IMPATIENT[p], color="black", linewidth=0.7, linestyle="--")


def _events_caption(rows: pd.DataFrame) -> str:
    """The models' errors, and the m at which the forms change places."""
    said = []
    for p_percent, own in rows.groupby(AXIS + CHANCE):
        errors = own.groupby(["variant", AXIS + LOSSES])["model_error"].mean().dropna()
        if len(errors):
            least, most = 100 * errors.min(), 100 * errors.max()
            said.append(f"At p = {p_percent:g} % the models are {least:+.1f} to {most:+.1f} % off")
        turns = _turns(own)
        if turns:
            said[-1:] = [f"{said[-1]}, and Impatient comes to lead from m = {turns[-1]:g} on"]
    return ". ".join(said) + "." if said else ""


def _turns(rows: pd.DataFrame) -> list[float]:
    """The m at which Impatient's mean exceeds the other's."""
    means = rows.groupby([AXIS + LOSSES, "variant"])["goodput_mbps"].mean().unstack()
    if IMPATIENT not in means or means.shape[1] != 2:
        return []
    (other,) = set(means) - {IMPATIENT}
    ahead = (means[IMPATIENT] > means[other]).to_numpy()
    at = means.index.to_numpy(dtype=float)
    return [float(m) for (was, now), m in zip(pairwise(ahead), at[1:], strict=True) if now > was]


def _regions(results: ExperimentResults, rows: pd.DataFrame) -> Iterator[AnyFigure]:
    """The map by the timer and the round trip of Impatient's flows; each timer a line."""
    flows = rows[(rows["variant"] == IMPATIENT) & rows["rto_at_timeout_ms"].notna()]
    found = {}
    for case, own in cases.split(flows, ("timer",), ("dropper", *SHOWN)):
        ratio = float((own["rto_at_timeout_ms"] / own["srtt_mean_ms"]).mean())
        if math.isfinite(ratio):  # short trials may have no sample of the round-trip time
            found[cases.case_words(case)] = Regions(ratio)
    if not found:
        return
    (first, map_of), *beside = found.items()
    drawn: Figure = chart(map_of, [each for _, each in beside])
    data = pd.DataFrame(
        {"p": p, "timer": name, "m_t": each.crossing(p), "imp_end": each.imp_end(p)}
        for name, each in found.items()
        for p in np.geomspace(2e-4, 5e-2, 60)
    )
    turns = " and ".join(
        f"m = {map_of.crossing(p):.1f} for p = {p:.2%}" for p in PMW_FIRST_IMPATIENT
    )
    caption = (
        "Which form is better where, by the equations with the timer and the round trip that were "
        f"measured ({first}: {map_of.rto_rtts:.2f} round trips, m* = {map_of.critical}): they "
        f"cross at {turns}."
    )
    yield NamedFigure(cases.stem(results.key, "regions"), caption, drawn, data)


SESSIONS = "sessions"
RATE = Measure("segments_a_rtt", "goodput (segments/RTT)")
EVENTS = Measure("loss_event_rate", "loss events (% of segments)", 100)
LOSSES_PER_EVENT = Measure("losses_per_event", "losses per event")
PANELS = (RATE, EVENTS, LOSSES_PER_EVENT)
LOGARITHMIC = (RATE, EVENTS)
BACKGROUND_READING = "lines: the models; crosses: the paper's table II"
HOW = (
    "Points are means with 95 % intervals (Student's t); lines are what the models expect of each "
    "flow's own p, m, round trip and timer."
)
PAPER = {
    RATE: [row.simulated for row in PMW_TABLE_2],
    EVENTS: [100 * row.loss_event_rate for row in PMW_TABLE_2],
    LOSSES_PER_EVENT: [row.loss_rate / row.loss_event_rate for row in PMW_TABLE_2],
}


def background_figures(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Goodput, p and m over the number of sessions, one row per queue; then the general figures."""
    rows = results.tcp
    if not rows.empty and AXIS + SESSIONS in rows:
        yield _figure(results, _with_models(rows))
    yield from general_figures.distributions(results)


def _with_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the models' predictions, in segments per round trip as in the paper."""
    found = with_model(rows)
    rtt_s = found["srtt_mean_ms"] / 1e3
    return found.assign(
        segments_a_rtt=found["goodput_pps"] * rtt_s, expected_a_rtt=found["expected_pps"] * rtt_s
    )


def _figure(results: ExperimentResults, rows: pd.DataFrame) -> NamedFigure:
    parts = [(case, own) for case, own in cases.split(rows, ("queue",), (SESSIONS,))]
    figure, grid = figure_layout.grid(len(parts), len(PANELS), panel=1.9)
    known = style.series_styles(list(rows["variant"].unique()))
    tables = []
    for line, (case, own) in zip(grid, parts, strict=True):
        words = cases.case_words(case)
        for axes, measure in zip(line, PANELS, strict=True):
            for variant, look in known.items():
                flows = own[own["variant"] == variant]
                table = error_bars.summary(flows, ["variant", AXIS + SESSIONS], measure)
                tables.append(table.assign(part=words, measure=measure.label))
                for _, cell in table.iterrows():
                    error_bars.point(axes, float(cell[AXIS + SESSIONS]), cell, look, across=False)
                if measure is RATE:
                    means = flows.groupby(AXIS + SESSIONS)["expected_a_rtt"].mean()
                    axes.plot(means.index, means.to_numpy(), color=look.colour, linewidth=1)
            _scale(axes, measure, paper="droptail" in words)
        line[0].set_title(words, loc="left", fontweight="bold", fontsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("background sessions")
    figure_layout.legend(figure, known)
    figure_layout.title_and_foot(
        figure,
        "NewReno among web sessions and long transfers",
        cases.foot(results, rows, BACKGROUND_READING),
    )
    stem = cases.stem(results.key, "sessions")
    return NamedFigure(
        stem, _background_caption(rows), figure, pd.concat(tables, ignore_index=True), HOW
    )


def _scale(axes: Axes, measure: Measure, *, paper: bool) -> None:
    if paper:
        flows = [row.flows for row in PMW_TABLE_2]
        axes.plot(flows, PAPER[measure], "x", color="black", markersize=3.5, markeredgewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    if measure in LOGARITHMIC:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=1)
    axes.set_ylabel(measure.label)


def _background_caption(rows: pd.DataFrame) -> str:
    """The leading form and its lead, for each queue."""
    said = []
    for case, own in cases.split(rows, ("queue",), (SESSIONS,)):
        means = own.groupby([AXIS + SESSIONS, "variant"])["goodput_mbps"].mean().unstack().dropna()
        if means.shape[1] == 2 and len(means):
            lead = 100 * (means["newreno"] / means["newreno-impatient"] - 1)
            said.append(
                f"with {cases.case_words(case)} Slow-but-Steady is {lead.min():+.1f} to "
                f"{lead.max():+.1f} % ahead of Impatient"
            )
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if said else ""


if __name__ == "__main__":
    draw_curves(Path(sys.argv[1]), Regions(TIMER_S / PMW_RTT_S), [Regions(MEASURED_S / PMW_RTT_S)])
