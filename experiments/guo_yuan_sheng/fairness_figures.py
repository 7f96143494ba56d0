"""Guo, Yuan, Sheng 2.2: four variants at once; the paper's pie, and what shows more."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures import cases, style
from analysis.figures.general import general_figures, over_time
from analysis.figures.plotting import error_bars, figure_layout
from analysis.figures.plotting.error_bars import Measure
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.figures.style import SeriesStyle
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments.kapre_saxena_joshi_hattikar.figures import shares

SHARE = Measure("share_percent", "share of goodput (%)")
LEAST_NAMED = 2  # % of a pie: thinner slices' names would lie on each other


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """Throughput over time and the shares, one row per queue; then the general figures."""
    rows = shares(results.tcp)
    if rows.empty or f"{AXIS}queue" not in rows:
        return
    if not results.digest.empty:
        yield _over_time(results, rows)
    yield _shares(results, rows)
    yield from general_figures.distributions(results)


def _over_time(results: ExperimentResults, rows: pd.DataFrame) -> NamedFigure:
    parts = list(cases.split(rows, ("queue", "within_s")))
    variants = sorted(set(rows["variant"]), key=variant_key)
    known = style.series_styles(variants)
    figure, grid = figure_layout.grid(len(parts), 2, panel=1.7)
    tables = []
    for (lines, areas), (case, own) in zip(grid, parts, strict=True):
        found = {
            name: over_time.series(own[own["variant"] == name], results.digest) for name in variants
        }
        for name, table in found.items():
            members = own[own["variant"] == name]
            over_time.thin(lines, over_time.singles(members, results.digest), known[name])
            over_time.line(lines, table, known[name], band=False)
            tables.append(table.assign(variant=name, **case))
        _stack(areas, found, {name: known[name].colour for name in variants})
        figure_layout.panel_title(lines, cases.case_words(case))
        lines.set_ylim(bottom=0)
        lines.margins(x=0)
        lines.set_ylabel("throughput (Mbit/s)")
        areas.set_ylabel("share of throughput (%)")
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    figure_layout.legend(figure, known)
    reading = "1 s bins; thick lines and areas: mean over the seeds; thin lines: single seeds"
    figure_layout.title_and_foot(
        figure, "Four variants at once, over time", cases.foot(results, rows, reading)
    )
    return NamedFigure(
        cases.stem(results.key, "time"),
        _caption(rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _stack(axes: Axes, found: dict[str, pd.DataFrame], colours: dict[str, str]) -> None:
    """The mean shares, one on the other."""
    wide = pd.DataFrame({n: t.set_index("time_s")["mean"] for n, t in found.items()}).fillna(0)
    total = wide.sum(axis=1)
    percent = wide[total > 0].div(total[total > 0], axis=0) * 100
    axes.stackplot(percent.index, percent.T, colors=list(colours.values()), alpha=0.75, linewidth=0)
    axes.set_ylim(0, 100)
    axes.margins(x=0)
    axes.grid(False)


def _shares(results: ExperimentResults, rows: pd.DataFrame) -> NamedFigure:
    parts = list(cases.split(rows, ("queue", "within_s")))
    variants = sorted(set(rows["variant"]), key=variant_key)
    known = style.series_styles(variants)
    figure, grid = figure_layout.grid(len(parts), 2, panel=1.7, head=0.3)
    tables = []
    for (dots, pie), (case, own) in zip(grid, parts, strict=True):
        table = error_bars.summary(own, ["variant"], SHARE)
        tables.append(table.assign(**case))
        _points(dots, table, own, known)
        figure_layout.panel_title(dots, cases.case_words(case))
        _pie(pie, table.set_index("variant")["mean"].reindex(variants).fillna(0), known)
    figure_layout.title_and_foot(
        figure,
        "Who gets how much",
        cases.foot(
            results, rows, error_bars.READING + "; rings: single seeds; dashed: an even split"
        ),
    )
    return NamedFigure(
        cases.stem(results.key, "shares"),
        _caption(rows),
        figure,
        pd.concat(tables, ignore_index=True),
    )


def _points(
    axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, known: dict[str, SeriesStyle]
) -> None:
    """Each variant's mean share with its interval, as a number too, and the single seeds."""
    variants = list(known)
    for _, cell in table.iterrows():
        name = str(cell["variant"])
        place = variants.index(name)
        error_bars.point(axes, place, cell, known[name])
        axes.annotate(
            f"{cell['mean']:.1f}",
            (1.02, place),
            xycoords=axes.get_yaxis_transform(),
            fontsize=6.5,
            va="center",
            annotation_clip=False,
        )
        single = rows.loc[rows["variant"] == name, SHARE.metric]
        error_bars.single_trials(axes, single, place, known[name])
    axes.axvline(100 / len(variants), color=style.GREY, linewidth=0.7, linestyle=(0, (4, 2)))
    axes.set_yticks(range(len(variants)), variants)
    axes.set(xlim=(0, 100), ylim=(len(variants) - 0.5, -0.5), xlabel=SHARE.label)


def _pie(axes: Axes, means: pd.Series, known: dict[str, SeriesStyle]) -> None:
    axes.pie(
        means,
        colors=[known[name].colour for name in means.index],
        startangle=90,
        counterclock=False,
        radius=1.15,
        wedgeprops={"linewidth": 1, "edgecolor": "white"},
        labels=[f"{n} {v:.0f} %" if v >= LEAST_NAMED else "" for n, v in means.items()],
        textprops={"fontsize": 6.5},
        labeldistance=1.12,
    )
    axes.set_title("the same as the paper's pie", loc="left", pad=9, fontsize=6.5, color=style.GREY)


def _caption(rows: pd.DataFrame) -> str:
    said = []
    for case, own in cases.split(rows, ("queue", "within_s")):
        means = own.groupby("variant")["share_percent"].mean().sort_values(ascending=False)
        said.append(
            f"{cases.case_words(case)}: " + ", ".join(f"{n} {v:.0f} %" for n, v in means.items())
        )
    return "Mean shares of the goodput with " + "; with ".join(said) + "."
