"""Draws the map of which NewReno is better where (PMW, figure 4).

`python -m analysis.figures.papers.parvez_mahanti_williamson.newreno_curves FOLDER` draws it for
PMW's path and ns-2's timer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from analysis.claims.parvez_mahanti_williamson.pmw_numbers import (
    PMW_CROSSING_OF_WINDOW,
    PMW_CROSSINGS,
    PMW_FIRST_IMPATIENT,
    PMW_GONE_FROM,
    PMW_RTT_S,
    PMW_THIN_FROM,
)
from analysis.figures.plotting import style
from analysis.figures.plotting.named_figure import save
from analysis.models.newreno import imp_window
from analysis.models.regions import Regions, sbs_most_losses

TIMER_S = 0.2  # ns-2's least RTO
MEASURED_S = 0.31  # what ns-2's timeouts last from the loss event on, less a round trip
RATES = (0.0002, 0.05)  # of loss events: the map's width
LOSSES = (1, 100)
RATE_TICKS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05)
LOSS_TICKS = (1, 2, 4, 10, 20, 40, 100)
POINTS = 600  # of a curve
PALE = 0.35  # of the areas: lines and letters stand on them


def draw(folder: Path, regions: Regions, beside: Sequence[Regions] = ()) -> list[Path]:
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
            (rate, LOSSES[1]),
            xytext=(-2, -3),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=6,
        )


def _frame(axes: Axes, regions: Regions) -> None:
    axes.set(xscale="log", yscale="log", xlim=RATES, ylim=LOSSES)
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


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Regions(TIMER_S / PMW_RTT_S), [Regions(MEASURED_S / PMW_RTT_S)])
