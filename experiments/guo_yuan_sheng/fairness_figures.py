"""Guo, Yuan, Sheng 2.2: four variants at once; the paper's pie, and what shows more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.figure import (
    Annotation,
    Area,
    Axis,
    Figure,
    Mark,
    Panel,
    Polygon,
    ReferenceLine,
    legend_entries,
)
from analysis.figures.general import general_figures, over_time
from analysis.figures.general.messages import said_name, said_value
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key

GOODPUT_SHARE = means.Measure("share_percent", "share of goodput (%)")
MIN_NAMED = 2  # % of a pie: thinner slices' names would lie on each other


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Draw throughput over time and the shares, one row per queue; then the general figures."""
    rows = means.with_goodput_shares(results.tcp)
    if rows.empty or f"{AXIS}queue" not in rows:
        return
    if not results.digest.empty:
        yield _over_time(results, rows)
    yield _shares(results, rows)
    yield from general_figures.distributions(results)


def _over_time(results: ExperimentResults, rows: pd.DataFrame) -> Figure:
    parts = list(cases.split(rows, ("queue", "within_s")))
    variants = sorted(set(rows["variant"]), key=variant_key)
    looks = style.series_styles(variants)
    grid, tables = [], []
    for place, (case, case_rows) in enumerate(parts):
        members = {name: case_rows[case_rows["variant"] == name] for name in variants}
        series = {name: over_time.series(members[name], results.digest) for name in variants}
        marks: list[Mark] = []
        for name, table in series.items():
            single = over_time.singles(members[name], results.digest)
            marks += over_time.trial_curves(single, looks[name], name)
            marks += over_time.mean_curve(table, looks[name], name, band=False)
            tables.append(table.assign(variant=name, **case))
        time = Axis("time (s)" if place == len(parts) - 1 else "", margin=0)
        rate = Axis("throughput (Mbit/s)", limits=(0, None))
        percent = Axis("share of throughput (%)", limits=(0, 100), grid=False)
        grid.append(
            (
                Panel(marks, time, rate, title=cases.case_words(case)),
                Panel(_stacked(series, looks), time, percent),
            )
        )
    reading = "1 s bins; thick lines and areas: mean over the seeds; thin lines: single seeds"
    return Figure(
        stem=cases.stem(results.key, "time"),
        title=_message(rows),
        panels=tuple(grid),
        caption=_caption(rows),
        foot=cases.foot(results, rows, reading),
        legend=legend_entries(looks),
        data=pd.concat(tables, ignore_index=True),
    )


def _stacked(series: dict[str, pd.DataFrame], looks: dict[str, SeriesStyle]) -> list[Mark]:
    """Return the mean shares, one on the other."""
    wide = pd.DataFrame({n: t.set_index("time_s")["mean"] for n, t in series.items()}).fillna(0)
    total = wide.sum(axis=1)
    percent = wide[total > 0].div(total[total > 0], axis=0) * 100
    top = percent.cumsum(axis=1)
    return [
        Area(
            percent.index,
            top[name] - percent[name],
            top[name],
            looks[name].colour,
            opacity=0.75,
            series=name,
        )
        for name in map(str, percent)
    ]


def _shares(results: ExperimentResults, rows: pd.DataFrame) -> Figure:
    parts = list(cases.split(rows, ("queue", "within_s")))
    variants = sorted(set(rows["variant"]), key=variant_key)
    looks = style.series_styles(variants)
    grid, tables = [], []
    for place, (case, case_rows) in enumerate(parts):
        table = means.summary(case_rows, ["variant"], GOODPUT_SHARE)
        tables.append(table.assign(**case))
        label = GOODPUT_SHARE.label if place == len(parts) - 1 else ""
        x, y = Axis(label, limits=(0, 100)), Axis(names=variants)
        dots = Panel(_points(table, case_rows, looks), x, y, title=cases.case_words(case))
        pie = _pie(table.set_index("variant")["mean"].reindex(variants).fillna(0), looks)
        grid.append((dots, pie))
    reading = f"{means.READING}; rings: single seeds; dashed: an even split"
    return Figure(
        stem=cases.stem(results.key, "shares"),
        title=_message(rows),
        panels=tuple(grid),
        caption=_caption(rows),
        foot=cases.foot(results, rows, reading),
        data=pd.concat(tables, ignore_index=True),
    )


def _points(table: pd.DataFrame, rows: pd.DataFrame, looks: dict[str, SeriesStyle]) -> list[Mark]:
    """Return each variant's mean share with its interval, as a number too, and single seeds."""
    variants = list(looks)
    marks: list[Mark] = [ReferenceLine("x", 100 / len(variants))]
    for _, cell in table.iterrows():
        name = str(cell["variant"])
        place = variants.index(name)
        single = rows.loc[rows["variant"] == name, GOODPUT_SHARE.metric]
        marks += [
            means.mean_point(place, cell, looks[name], name),
            means.single_trials(single, place, looks[name], name),
            Annotation(f"{cell['mean']:.1f}", 1.02, place, x_place="panel", size=6.5, up="center"),
        ]
    return marks


def _pie(shares: pd.Series, looks: dict[str, SeriesStyle]) -> Panel:
    """Return the paper's pie: clockwise from the top."""
    marks: list[Mark] = []
    begin = 0.0
    for name, value in shares.items():
        end = begin + float(value) / 100
        turn = 2 * np.pi * np.linspace(begin, end, max(3, round(120 * (end - begin))))
        x, y = np.concatenate(([0], np.sin(turn))), np.concatenate(([0], np.cos(turn)))
        colour = looks[str(name)].colour
        marks.append(Polygon(x, y, colour, opacity=1.0, edge=style.PAPER, series=str(name)))
        if value >= MIN_NAMED:
            middle = np.pi * (begin + end)
            right = np.sin(middle) > 0
            marks.append(
                Annotation(
                    f"{name} {value:.0f} %",
                    float(1.12 * np.sin(middle)),
                    float(1.12 * np.cos(middle)),
                    size=6.5,
                    across="left" if right else "right",
                    up="center",
                )
            )
        begin = end
    note = "these means, drawn as the paper does"
    axis = Axis(limits=(-1.2, 1.2), grid=False)
    return Panel(marks, axis, axis, note=note, bare=True, equal=True)


def _message(rows: pd.DataFrame) -> str:
    """Say which variant takes most and which least, behind each queue."""
    statements = list[str]()
    parts = list(cases.split(rows, ("queue", "within_s")))
    several = {each for case, _ in parts for each in case.items() if len(parts) > 1}
    varied = [name for name in ("queue", "within_s") if sum(n == name for n, _ in several) > 1]
    for case, case_rows in parts:
        shares = case_rows.groupby("variant")["share_percent"].mean()
        most, least = (said_name(str(name)) for name in (shares.idxmax(), shares.idxmin()))
        gets, of = (" gets", " % of the goodput") if not statements else ("", " %")
        share = f"{most}{gets} {shares.max():.0f}{of} and {least} {shares.min():.0f} %"
        setting = [said_value(name, case[name]) for name in varied if name in case]
        statements.append(f"with {', '.join(setting)} {share}" if setting else share)
    text = "; ".join(statements)
    return f"{text[:1].upper()}{text[1:]}."


def _caption(rows: pd.DataFrame) -> str:
    sentences = []
    for case, case_rows in cases.split(rows, ("queue", "within_s")):
        by_variant = (
            case_rows.groupby("variant")["share_percent"].mean().sort_values(ascending=False)
        )
        sentences.append(
            f"{cases.case_words(case)}: "
            + ", ".join(f"{n} {v:.0f} %" for n, v in by_variant.items())
        )
    return "Mean shares of the goodput with " + "; with ".join(sentences) + "."
