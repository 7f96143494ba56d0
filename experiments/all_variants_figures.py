"""The variants beside each other: one line per variant, one panel per measure, one dot per seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, NullLocator

from analysis.figures import cases, style
from analysis.figures.general import general_figures
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.setting_groups import by_setting
from analysis.metrics.metric_rows import INVALID, SUSPECT, counted, invalid
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import CONFIDENCE, half_width
from analysis.statistics.text_tables import NO_VALUE
from analysis.trials.labels import path_rtt_ms, setting_label, variant_key
from testbed.scenario.model import Scenario
from testbed.store import Trial

WIDE = 20  # times the median: the axis becomes logarithmic if a value is farther out
DASHES = (0, (4, 2))
SMALL: dict[str, Any] = {"fontsize": 5.5, "color": style.GREY}


@dataclass(frozen=True)
class Measure:
    """A panel: a metric, its words, and a line to compare with."""

    metric: str
    label: str
    decimals: int
    count: bool = False  # from zero on
    reference: tuple[float, str] | None = None


@dataclass(frozen=True)
class Line:
    """A variant: its metrics, one row per seed that ran, or the reason why none did."""

    variant: str
    ran: pd.DataFrame
    reason: str = ""

    def values(self, metric: str) -> pd.Series[float]:
        """The metric of every seed that has it."""
        return pd.to_numeric(self.ran[metric], errors="coerce").dropna().astype(float)

    def suspect(self, metric: str) -> pd.Series[bool]:
        """A mask of the values that come from suspect trials."""
        return self.ran["verdict"].eq(SUSPECT).loc[self.values(metric).index]

    def mean(self, metric: str) -> float:
        """Over the seeds; NaN where none has the metric."""
        return float(self.values(metric).mean())


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The variants beside each other, a figure for each setting; then the plane and the
    distributions.
    """
    for stem, members in by_setting(results.trials, cases.stem(results.key, "beside")).items():
        names = {trial.path.name for trial in members}
        rows = results.rows[results.rows["trial"].isin(names)]
        data = _data(counted(rows), measures(members[0].scenario))
        if len(data):
            caption = title(lines(rows), members[0].scenario).replace("\n", " ") + "."
            yield NamedFigure(stem, caption, _figure(members, rows), data)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _data(rows: pd.DataFrame, shown: Sequence[Measure]) -> pd.DataFrame:
    return rows[["variant", "seed", "verdict", *(measure.metric for measure in shown)]]


def measures(scenario: Scenario) -> tuple[Measure, ...]:
    """The compared measures, with the values that the network allows."""
    rate, path = scenario.network.bottleneck_mbit, path_rtt_ms(scenario)
    return (
        Measure(
            "throughput_mbps", "throughput (Mbit/s)", 2, reference=(rate, f"link: {rate:g} Mbit/s")
        ),
        Measure("retransmitted", "retransmissions", 0, count=True),
        Measure("timeouts", "timeouts", 1, count=True),
        Measure("rtt_mean_ms", "mean RTT (ms)", 1, reference=(path, f"path: {path:g} ms")),
    )


def lines(metrics: pd.DataFrame) -> list[Line]:
    """One line per variant, in the usual order."""
    flows = metrics[metrics["variant"].fillna("") != ""]  # others are not TCP
    groups = {str(name): rows for name, rows in flows.groupby("variant", sort=False)}
    return [_line(name, groups[name]) for name in sorted(groups, key=variant_key)]


def _line(variant: str, rows: pd.DataFrame) -> Line:
    ran = counted(rows)
    ends = rows["status"].where(~invalid(rows), INVALID)
    statuses = ", ".join(dict.fromkeys(map(str, ends)))
    return Line(variant, ran, statuses if ran.empty else "")


def _figure(trials: Sequence[Trial], metrics: pd.DataFrame) -> Figure:
    scenario = trials[0].scenario
    down, across = lines(metrics), measures(scenario)
    figure, axes = _grid(len(down), len(across))
    colours = style.variant_colours(line.variant for line in down)
    for panel, measure in zip(axes, across, strict=True):
        _panel(panel, measure, down, colours)
    _names(axes[0], down, colours)
    _reasons(axes[0], down)
    words = title(down, scenario)
    figure.text(0.01, 0.985, words, fontsize=9, fontweight="bold", va="top", linespacing=1.3)
    small = f"{setting_label(trials[0])}\n{_reading(down, trials)}"
    figure.text(0.01, 0.015, small, fontsize=5.5, color=style.GREY, va="bottom", linespacing=1.4)
    return figure


def _grid(height: int, width: int) -> tuple[Figure, list[Axes]]:
    """The panels, between a title and a footer of fixed heights."""
    inches = 0.21 * height + 1.5
    head, foot = 0.48 / inches, 0.34 / inches
    figure = Figure(
        figsize=(style.WIDTH_INCHES, inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - head - foot), w_pad=0.06),
    )
    return figure, list(figure.subplots(1, width, squeeze=False, sharey=True)[0])


def _names(axes: Axes, down: Sequence[Line], colours: dict[str, str]) -> None:
    """The variants down the side, the first at the top."""
    axes.set_yticks(range(len(down)), [line.variant for line in down])
    axes.set_ylim(len(down) - 0.4, -0.6)
    for label, line in zip(axes.get_yticklabels(), down, strict=True):
        label.set(color=colours[line.variant], fontweight="bold", fontsize=7.5)


def _panel(axes: Axes, measure: Measure, down: Sequence[Line], colours: dict[str, str]) -> None:
    axes.set_title(measure.label, fontsize=7, fontweight="bold", loc="left", pad=12)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if measure.reference:
        _reference(axes, *measure.reference)
    for place, line in enumerate(down):
        suspect = line.suspect(measure.metric)
        _dots(axes, place, line.values(measure.metric), suspect, colours[line.variant])
    _numbers(axes, measure, down)
    _scale(axes, measure, down)


def _reference(axes: Axes, value: float, text: str) -> None:
    axes.axvline(value, color=style.GREY, linewidth=0.7, linestyle=DASHES, zorder=1.5)
    axes.annotate(
        text,
        (value, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        **SMALL,
    ).set_in_layout(False)  # it may stand out at the side


def _dots(
    axes: Axes, place: int, values: pd.Series[float], suspect: pd.Series[bool], colour: str
) -> None:
    """Every seed, their mean, and how far the seeds let it be trusted; suspect ones hollow."""
    if values.empty:
        return
    mean = float(values.mean())
    if len(values) > 1:
        for hollow, own in values.groupby(suspect):
            below = np.full(len(own), place + 0.25)
            how = _marker(bool(hollow), colour)
            axes.plot(own, below, "o" if hollow else ".", markersize=3, alpha=0.6, **how)
        half = half_width(values)
        axes.plot(
            [mean - half, mean + half], [place, place], color=colour, linewidth=1.6, alpha=0.5
        )
    axes.plot(mean, place, "o", markersize=4.2, **_marker(bool(suspect.all()), colour))


def _marker(suspect: bool, colour: str) -> dict[str, Any]:
    """Full, or hollow if its trial is suspect."""
    if not suspect:
        return {"color": colour, "markeredgewidth": 0}
    return {"color": colour, "markerfacecolor": style.PAPER, "markeredgewidth": 0.8}


def _numbers(axes: Axes, measure: Measure, down: Sequence[Line]) -> None:
    """The means beside the panel, so that what is far from the others reads as well."""
    for place, line in enumerate(down):
        mean = line.mean(measure.metric)
        axes.annotate(
            f"{mean:.{measure.decimals}f}" if np.isfinite(mean) else NO_VALUE,
            (1, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(23, 0),
            textcoords="offset points",
            fontsize=6.5,
            ha="right",
            va="center",
        )


def _reasons(axes: Axes, down: Sequence[Line]) -> None:
    """Why a variant has no dots."""
    for place, line in enumerate(down):
        axes.annotate(
            line.reason,
            (0.03, place),
            xycoords=axes.get_yaxis_transform(),
            fontsize=6,
            color=style.GREY,
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )


def _scale(axes: Axes, measure: Measure, down: Sequence[Line]) -> None:
    """From zero on for counts; logarithmic where one would press the others together."""
    if not measure.count:
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        return
    parts = [line.values(measure.metric) for line in down]
    values = np.concatenate(parts) if parts else np.zeros(0)
    top = max(values, default=0)
    if top and top > WIDE * max(float(np.median(values)), 1):
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
        axes.set_xlim(-0.15, top * 2)
        decades = [10**power for power in range(1, 9) if 10**power < top * 2]
        axes.set_xticks([0, *decades], ["0", *(_thousands(tick) for tick in decades)])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.text(0, 1.01, "logarithmic", transform=axes.transAxes, **SMALL)
    else:
        axes.set_xlim(-0.05 * max(top, 1), 1.1 * max(top, 1))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))


def _thousands(value: int) -> str:
    return f"{value // 1000}k" if value >= 1000 else str(value)


def title(down: Sequence[Line], scenario: Scenario) -> str:
    """The finding, in the figure's own numbers."""
    rate = scenario.network.bottleneck_mbit
    ran = [line for line in down if not line.reason]
    if not ran:
        return f"Alone on a link of {rate:g} Mbit/s: no trial ran"
    return (
        f"Alone on a link of {rate:g} Mbit/s: throughput "
        f"{_range(ran, 'throughput_mbps', 'Mbit/s', 2)},\n"
        f"mean round-trip time {_range(ran, 'rtt_mean_ms', 'ms', 1)}"
    )


def _range(ran: Sequence[Line], metric: str, unit: str, decimals: int) -> str:
    """The lowest mean and the highest, and whose they are."""
    means = {line.variant: line.mean(metric) for line in ran}
    known = {name: mean for name, mean in means.items() if np.isfinite(mean)}
    if not known:
        return "not known"
    low, high = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    first, last = f"{known[low]:.{decimals}f}", f"{known[high]:.{decimals}f}"
    if first == last:
        return f"{first} {unit}"
    return f"{first} ({low}) to {last} {unit} ({high})"


def _reading(down: Sequence[Line], trials: Sequence[Trial]) -> str:
    seeds = sorted({trial.scenario.seed for trial in trials})
    numbers = ", ".join(map(str, seeds[:8])) + (" …" if len(seeds) > 8 else "")
    most = max((len(line.ran) for line in down), default=0)
    how = f"n = {most} per variant, seed{'s' * (len(seeds) > 1)} {numbers}"
    if any((line.ran["verdict"] == SUSPECT).any() for line in down):
        how += "; hollow: suspect"
    if most < 2:
        return how
    return (
        f"{how} (a small dot each); large dots and numbers: their means; "
        f"bars: {100 * CONFIDENCE:.0f} % confidence intervals of the means"
    )
