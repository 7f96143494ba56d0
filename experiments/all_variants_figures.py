"""The variants beside each other: one line per variant, one panel per measure, one dot per seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import (
    Annotation,
    Axis,
    Figure,
    Mark,
    Panel,
    PointEvidence,
    PointSeries,
    ReferenceLine,
)
from analysis.figures.general import general_figures
from analysis.figures.setting_groups import by_setting
from analysis.metrics.metric_rows import INVALID, SUSPECT, counted, invalid
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import CONFIDENCE, half_width
from analysis.statistics.text_tables import NO_VALUE
from analysis.trials.labels import path_rtt_ms, setting_label, variant_key
from testbed.scenario.model import Scenario
from testbed.store.reading import Trial

LOGARITHMIC_FROM = 20  # times the median: the axis becomes logarithmic if a value is farther out


@dataclass(frozen=True)
class ComparedMeasure:
    """A panel: a metric, its words, and a line to compare with."""

    metric: str
    label: str
    decimals: int
    count: bool = False  # from zero on
    reference: tuple[float, str] | None = None


@dataclass(frozen=True)
class VariantRows:
    """A variant: its metrics, one row per seed that ran, or the reason why none did."""

    variant: str
    ran: pd.DataFrame
    reason: str = ""

    def values(self, metric: str) -> pd.Series[float]:
        """Return the metric of every seed that has it."""
        return pd.to_numeric(self.ran[metric], errors="coerce").dropna().astype(float)

    def suspect(self, metric: str) -> pd.Series[bool]:
        """Return a mask of the values that come from suspect trials."""
        return self.ran["verdict"].eq(SUSPECT).loc[self.values(metric).index]

    def mean(self, metric: str) -> float:
        """Return the mean over the seeds; NaN where none has the metric."""
        return float(self.values(metric).mean())


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield a figure of the variants for each setting; then the plane and the distributions."""
    for stem, members in by_setting(results.trials, cases.stem(results.key, "beside")).items():
        names = {trial.path.name for trial in members}
        rows = results.rows[results.rows["trial"].isin(names)]
        data = _data(counted(rows), measures(members[0].scenario))
        if len(data):
            yield dataclasses.replace(figure(members, rows), stem=stem, data=data)
    yield from general_figures.planes(results)
    yield from general_figures.distributions(results)


def _data(rows: pd.DataFrame, shown: Sequence[ComparedMeasure]) -> pd.DataFrame:
    return rows[["variant", "seed", "verdict", *(measure.metric for measure in shown)]]


def measures(scenario: Scenario) -> tuple[ComparedMeasure, ...]:
    """Return the compared measures, with the values that the network allows."""
    rate, path = scenario.network.bottleneck_mbit, path_rtt_ms(scenario)
    return (
        ComparedMeasure(
            "throughput_mbps", "throughput (Mbit/s)", 2, reference=(rate, f"link, {rate:g} Mbit/s")
        ),
        ComparedMeasure("retransmitted", "retransmissions", 0, count=True),
        ComparedMeasure("timeouts", "timeouts", 1, count=True),
        ComparedMeasure("rtt_mean_ms", "mean RTT (ms)", 1, reference=(path, f"path, {path:g} ms")),
    )


def lines(metrics: pd.DataFrame) -> list[VariantRows]:
    """Return the rows of each variant, in the usual order."""
    flows = metrics[metrics["variant"].fillna("") != ""]  # others are not TCP
    groups = {str(name): rows for name, rows in flows.groupby("variant", sort=False)}
    return [_line(name, groups[name]) for name in sorted(groups, key=variant_key)]


def _line(variant: str, rows: pd.DataFrame) -> VariantRows:
    ran = counted(rows)
    ends = rows["status"].where(~invalid(rows), INVALID)
    statuses = ", ".join(dict.fromkeys(map(str, ends)))
    return VariantRows(variant, ran, statuses if ran.empty else "")


def figure(trials: Sequence[Trial], metrics: pd.DataFrame) -> Figure:
    """Return one panel per measure, with the variants down the side."""
    scenario = trials[0].scenario
    down, across = lines(metrics), measures(scenario)
    colours = style.variant_colours(line.variant for line in down)
    panels = []
    for measure in across:
        first = measure is across[0]
        x, note = _axis(measure, down)
        names = Axis(
            names=[line.variant for line in down],
            names_shown=first,
            name_colours=[colours[line.variant] for line in down],
            limits=(len(down) - 0.4, -0.6),
            line=False,
        )
        marks: list[Mark] = []
        if measure.reference:
            value, caption = measure.reference
            marks.append(ReferenceLine("x", value))
            note = f"dashed: {caption}"
        for place, line in enumerate(down):
            marks += _dots(place, line, measure.metric, colours[line.variant])
            mean = line.mean(measure.metric)
            number = f"{mean:.{measure.decimals}f}" if np.isfinite(mean) else NO_VALUE
            marks.append(Annotation(number, 1, place, x_place="panel", offset_points=(23, 0),
                                    size=6.5, across="right", up="center"))  # fmt: skip
            if first and line.reason:
                marks.append(Annotation(line.reason, 0.03, place, x_place="panel",
                                        colour=style.GREY, up="center", boxed=True))  # fmt: skip
        panels.append(Panel(marks, x, names, title=measure.label, note=note))
    caption = title(down, scenario)
    return Figure(
        stem="beside",
        title=caption,
        panels=(panels,),
        caption=caption.replace("\n", " ") + ".",
        foot=f"{setting_label(trials[0])}\n{_reading(down, trials)}",
        foot_size=5.5,
        row_inches=0.21 * len(down) + 0.7,
    )


def _dots(place: int, line: VariantRows, metric: str, colour: str) -> list[Mark]:
    """Mark every seed, their mean and its interval; suspect ones are hollow."""
    values, suspect = line.values(metric), line.suspect(metric)
    if values.empty:
        return []
    marks: list[Mark] = []
    if len(values) > 1:
        for hollow, members in values.groupby(suspect):
            marks.append(
                PointSeries(
                    members,
                    np.full(len(members), place + 0.25),
                    colour,
                    "o" if hollow else ".",
                    size=3,
                    hollow=bool(hollow),
                    opacity=0.6,
                    edge_width=0.8 if hollow else 0,
                )
            )
    mean, half = float(values.mean()), half_width(values)
    low, high = [mean - half], [mean + half]
    trials = tuple(line.ran.loc[values.index, "trial"].astype(str))
    hollow_mean = bool(suspect.all())
    marks.append(
        PointSeries(
            [mean],
            [place],
            colour,
            size=4.2,
            hollow=hollow_mean,
            edge_width=0.8 if hollow_mean else 0,
            low=low,
            high=high,
            along="x",
            evidence=PointEvidence(low, high, [len(values)], [trials]),
        )
    )
    return marks


def _axis(measure: ComparedMeasure, down: Sequence[VariantRows]) -> tuple[Axis, str]:
    """Return the axis and a note: counts from zero on, logarithmic where one dwarfs the others."""
    if not measure.count:
        return Axis(margin=0.08, tick_count=4), ""
    parts = [line.values(measure.metric) for line in down]
    values = np.concatenate(parts) if parts else np.zeros(0)
    top = float(max(values, default=0))
    if top > LOGARITHMIC_FROM * max(float(np.median(values)) if len(values) else 0, 1):
        decades = [10**power for power in range(1, 9) if 10**power < top * 2]
        labels = ["0", *map(_thousands, decades)]
        limits = (-0.15, top * 2)
        axis = Axis(scale="symlog", limits=limits, ticks=[0, *decades], tick_labels=labels)
        return axis, "logarithmic"
    limits = (-0.05 * max(top, 1), 1.1 * max(top, 1))
    return Axis(limits=limits, tick_count=4, integer=True), ""


def _thousands(value: int) -> str:
    return f"{value // 1000}k" if value >= 1000 else str(value)


def title(down: Sequence[VariantRows], scenario: Scenario) -> str:
    """Return the finding, in the numbers of the figure."""
    rate = scenario.network.bottleneck_mbit
    ran = [line for line in down if not line.reason]
    if not ran:
        return f"Alone on a link of {rate:g} Mbit/s: no trial ran"
    return (
        f"Alone on a link of {rate:g} Mbit/s: throughput "
        f"{_range(ran, 'throughput_mbps', 'Mbit/s', 2)},\n"
        f"mean round-trip time {_range(ran, 'rtt_mean_ms', 'ms', 1)}"
    )


def _range(ran: Sequence[VariantRows], metric: str, unit: str, decimals: int) -> str:
    """Name the lowest mean and the highest, and their variants."""
    means = {line.variant: line.mean(metric) for line in ran}
    known = {name: mean for name, mean in means.items() if np.isfinite(mean)}
    if not known:
        return "not known"
    low, high = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    first, last = f"{known[low]:.{decimals}f}", f"{known[high]:.{decimals}f}"
    if first == last:
        return f"{first} {unit}"
    return f"{first} ({low}) to {last} {unit} ({high})"


def _reading(down: Sequence[VariantRows], trials: Sequence[Trial]) -> str:
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
