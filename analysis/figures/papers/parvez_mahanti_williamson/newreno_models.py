"""Parvez, Mahanti, Williamson, figures 2 and 4: two NewRenos under loss events, and the models."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.claims.parvez_mahanti_williamson.pmw_numbers import (
    PMW_FIRST_IMPATIENT,
    PMW_MODEL_ERRORS,
)
from analysis.figures.general import general_figures
from analysis.figures.papers.parvez_mahanti_williamson import newreno_curves as region_map
from analysis.figures.plotting import cases, error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.metrics.metric_rows import AXIS
from analysis.models.flow_against_model import with_model
from analysis.models.regions import Regions
from analysis.results.experiment_results import ExperimentResults

LOSSES, CHANCE = "m", "p_percent"
GOODPUT = Measure("goodput_mbps", "goodput (Mbit/s)")
ERROR = Measure("model_error", "model above flow (%)", 100, zero=False)
SHOWN = (LOSSES, CHANCE, "variant")
IMPATIENT = "newreno-impatient"
READING = "dashed: from here on Impatient is better in the paper"


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Figure 2 for each timer and dropper, figure 4 by the timer that was measured; then the
    general ones."""
    rows = results.tcp
    if not rows.empty and AXIS + LOSSES in rows:
        rows = _with_models(rows)
        for case, own in cases.split(rows, ("timer", "dropper"), SHOWN):
            if own[AXIS + LOSSES].nunique() > 1:
                yield _throughput(results, case, own)
        yield from _regions(results, rows)
    yield from general_figures.distributions(results)


def _with_models(rows: pd.DataFrame) -> pd.DataFrame:
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
        cases.foot(results, rows, READING),
    )
    stem = cases.stem(results.key, "events", *case.values())
    how = (
        "Above: what arrived (points: means with 95 % intervals, Student's t) and what the models "
        "expect of each flow's own p, m, round trip and timer (lines). Below: by how much the "
        "model is above the flow; bands are the errors that the paper prints."
    )
    return NamedFigure(stem, _caption(rows), figure, pd.concat(tables, ignore_index=True), how)


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


def _caption(rows: pd.DataFrame) -> str:
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
        found[cases.case_words(case)] = Regions(ratio)
    if not found:
        return
    (first, map_of), *beside = found.items()
    chart: Figure = region_map.chart(map_of, [each for _, each in beside])
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
    yield NamedFigure(cases.stem(results.key, "regions"), caption, chart, data)
