"""Parvez, Mahanti, Williamson, figure 3: two NewRenos among sessions of real traffic."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.claims.parvez_mahanti_williamson.pmw_numbers import PMW_TABLE_2
from analysis.figures.general import general_figures
from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.metrics.metric_rows import AXIS
from analysis.models.flow_against_model import with_model
from analysis.results.experiment_results import ExperimentResults

SESSIONS = "sessions"
RATE = Measure("segments_a_rtt", "goodput (segments/RTT)")
EVENTS = Measure("loss_event_rate", "loss events (% of segments)", 100)
LOSSES = Measure("losses_per_event", "losses per event")
PANELS = (RATE, EVENTS, LOSSES)
LOGARITHMIC = (RATE, EVENTS)
READING = "lines: the models; crosses: the paper's table II"
HOW = (
    "Points are means with 95 % intervals (Student's t); lines are what the models expect of each "
    "flow's own p, m, round trip and timer."
)
PAPER = {
    RATE: [row.simulated for row in PMW_TABLE_2],
    EVENTS: [100 * row.loss_event_rate for row in PMW_TABLE_2],
    LOSSES: [row.loss_rate / row.loss_event_rate for row in PMW_TABLE_2],
}


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
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
        cases.foot(results, rows, READING),
    )
    stem = cases.stem(results.key, "sessions")
    return NamedFigure(stem, _caption(rows), figure, pd.concat(tables, ignore_index=True), HOW)


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


def _caption(rows: pd.DataFrame) -> str:
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
