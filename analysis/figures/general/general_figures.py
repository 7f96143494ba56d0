"""The figures of every experiment: measures over the main axis, planes, distributions, shares.

Shares are what each variant gets of a trial's goodput, with Jain's index over its flows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.figures import cases, means, style
from analysis.figures.cases import axes_beside
from analysis.figures.figure import Axis, Figure, Mark, Panel, SegmentSet, in_rows
from analysis.figures.general import (
    distribution,
    heat_map,
    load_sweep,
    messages,
    over_time,
    plane,
    transfer_times,
)
from analysis.figures.general.transfer_times import SERIES
from analysis.figures.means import DROPS, JITTER, LATENCY, MARKED, THROUGHPUT, Measure
from analysis.figures.timeline import timeline_figure
from analysis.metrics.columns import measured_columns
from analysis.metrics.digest import RTT_QUANTILES
from analysis.metrics.metric_rows import AXIS, varied_axes
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD, half_width
from analysis.statistics.text_tables import SINGLE_FLOWS, variant_means
from testbed.errors import TestbedError
from testbed.scenario.model import GREEDY, FlowKind
from testbed.scenario.program_numbers import MEASURED_PREFIX
from testbed.store.records import Status

SHARE_OF_GOODPUT = Measure("share_percent", "share of goodput (%)")
GROUP = "group"  # a variant's flows in a trial, `cubic × 3`
SHARES_READING = (
    "points: means; bars: 95 % intervals (Student's t); rings: single seeds; lines: even split"
)


def by_variant(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per trial and variant: the sum of its flows' shares, and that of an even split."""
    total = rows.groupby("trial")["goodput_mbps"].transform("sum")
    share = (100 * rows["goodput_mbps"] / total).where(total > 0)
    even = 100 / rows.groupby("trial")["flow"].transform("count")
    kept = ["seed", "verdict", "jain", *(each for each in rows if str(each).startswith(AXIS))]
    groups = rows.assign(share_percent=share, even=even, flows=1).groupby(["trial", "variant"])
    sums = groups[["share_percent", "even", "flows"]].sum(min_count=1)
    table = sums.join(groups[kept].first()).reset_index()
    times = table["flows"].map(lambda flows: f" × {flows}" if flows > 1 else "")
    return table.assign(**{GROUP: table["variant"] + times})


def share_panels(parts: Sequence[tuple[str, pd.DataFrame]]) -> tuple[list[Panel], pd.DataFrame]:
    """Return one panel per part: one line per variant, Jain's index above."""
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), GROUP)
    panels, tables = [], []
    for label, rows in parts:
        table = means.summary(rows, [GROUP], SHARE_OF_GOODPUT)
        jain = rows.drop_duplicates("trial")["jain"]
        tables.append(table.assign(part=label, jain=float(jain.mean())))
        names = [name for name in looks if name in set(rows[GROUP])]
        marks: list[Mark] = []
        for place, name in enumerate(names):
            group_rows = rows[rows[GROUP] == name]
            even = float(group_rows["even"].iloc[0])
            marks += [
                SegmentSet([even], [place - 0.4], [even], [place + 0.4], style.GREY, width=0.8),
                means.single_trials(group_rows[SHARE_OF_GOODPUT.metric], place, looks[name]),
                means.mean_point(place, table[table[GROUP] == name].iloc[0], looks[name]),
            ]
        panels.append(
            Panel(
                marks,
                Axis(SHARE_OF_GOODPUT.label, limits=(0, 100)),
                Axis(names=names),
                title=label,
                title_right=jain_words(jain),
            )
        )
    return panels, pd.concat(tables, ignore_index=True)


def jain_words(jain: pd.Series) -> str:
    """`Jain's index 0.93 ± 0.02`."""
    half = half_width(jain.dropna()) if jain.notna().sum() > 1 else 0.0
    return f"Jain's index {jain.mean():.3f}" + (f" ± {half:.3f}" if half else "")


def shares_message(data: pd.DataFrame) -> str:
    """Write the shares of each part."""
    sentences = []
    for label, part_rows in data.groupby("part", sort=False):
        pairs = zip(part_rows[GROUP].map(messages.said_name), part_rows["mean"], strict=True)
        first, *others = ((name, f"{mean:.0f} %") for name, mean in pairs)
        start = f"with {label!s}, " if label else ""
        sentences.append(
            f"{start}{first[0]} gets {first[1]}" + "".join(f", {n} {v}" for n, v in others)
        )
    text = "; ".join(sentences)
    return f"{text[:1].upper()}{text[1:]} of the goodput."


DRAWN_KINDS = (*GREEDY, FlowKind.COMMAND, FlowKind.CALL)  # CBR loads, workloads have figures
MAX_CASES = 6  # figures or panels of one kind; the tables have the rest
MAX_TIMELINES = 4  # flows, or panels over time
MAX_PARTS, FEW_PARTS = 4, 3  # values of an axis in a figure: all up to 4, or 3 of more
MAX_DELAYS = 2  # the same, of the distributions, which are large


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield all general figures that the experiment has data for."""
    alone = not results.varied(results.rows)
    several = results.rows["flow"].nunique() > 1
    if alone and not several:
        yield from flow_timelines(results)
    axis = main_axis(few_series(results))
    if axis and load_sweep.is_number(few_series(results), axis):  # what the experiment is about
        yield from maps(results)
        yield from sweeps(results)
        yield from over_seconds(results)
    else:
        yield from over_seconds(results)
        if has_points(results):
            yield from sweeps(results)
    yield from shares(results)
    if has_points(results):
        yield from planes(results)
    yield from distributions(results)
    yield from transfer_times.draw(results)
    if alone and several:
        yield from flow_timelines(results)


def has_points(results: ExperimentResults) -> bool:
    """Whether there is more than one mean to compare: a single number needs no figure."""
    rows = named(results)
    axes = [AXIS + name for name in results.varied(rows)]
    return len(rows[[SERIES, *axes]].drop_duplicates()) > 1


def drawn(results: ExperimentResults) -> pd.DataFrame:
    """Return the good rows of the flows that are drawn; one without a variant is its own."""
    rows = results.good[results.good["kind"].isin(DRAWN_KINDS)]
    silent = _silent(rows)
    if silent.any():
        throughput = rows[THROUGHPUT.metric].where(~silent)
        rows = rows.assign(**{THROUGHPUT.metric: throughput})
    return rows.assign(variant=rows["variant"].where(rows["variant"] != "", rows["flow"]))


def _silent(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return a mask of programs such as ping, of which nothing is counted in any trial.

    They have no throughput, rather than 0.
    """
    is_program = rows["kind"] == FlowKind.COMMAND
    flows = rows[is_program].groupby("flow")
    names = [name for name, of_flow in flows if not of_flow[THROUGHPUT.metric].max() > 0]
    return is_program & rows["flow"].isin(names)


def named(results: ExperimentResults) -> pd.DataFrame:
    """Return the drawn flows with the names of their series: the variant, the flow if needed."""
    rows = flows_apart(drawn(results))
    variant = rows["variant"]
    count = rows.groupby(["trial", "variant"])["flow"].transform("count")
    several = (count > 1) & (count <= SINGLE_FLOWS)
    return rows.assign(**{SERIES: variant.where(~several, variant + " (" + rows["flow"] + ")")})


def main_axis(rows: pd.DataFrame) -> str:
    """Choose the axis to draw over: the number with most values, or else the name with most."""
    axes = [name for name in axes_beside(rows, SERIES) if name != "pair"]
    numbers = [name for name in axes if load_sweep.is_number(rows, name)]
    return max(numbers or axes, key=lambda name: rows[AXIS + name].nunique(), default="")


def others(rows: pd.DataFrame, *shown: str, series: str = SERIES) -> list[str]:
    """Name the axes that vary and that neither the figure nor its series shows."""
    return [name for name in axes_beside(rows, series) if name not in shown]


def measures(rows: pd.DataFrame) -> list[means.Measure]:
    """Return the main measures that this experiment has."""
    marks = (MARKED,) if rows[MARKED.metric].gt(0).any() else ()
    chosen = (THROUGHPUT, DROPS, *marks, LATENCY, JITTER)
    printed = [
        means.Measure(name, name.removeprefix(MEASURED_PREFIX).replace("_", " "))
        for name in measured_columns(rows.columns)
    ]
    return [each for each in (*chosen, *printed) if rows[each.metric].notna().any()]


def flow_timelines(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the timeline of each flow of the first trial that ran well."""
    ran = [trial for trial in results.trials if trial.record.status is Status.OK]
    for trial in ran[:1]:
        for flow in trial.record.flows[:MAX_TIMELINES]:
            try:
                full = timeline_figure.full_figure(trial, flow)
            except TestbedError as error:  # damaged after the trial had been reduced
                results.not_shown.append(f"{trial.path.name}: no timeline: {error.message}")
                return
            if full is not None:
                stem = cases.stem(results.key, flow.name, "timeline")
                yield dataclasses.replace(full, stem=stem)


def shares(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the variants' shares and Jain's index, where flows share the network."""
    tcp = results.tcp  # calls and programs may ask for less than their share
    rows = flows_apart(tcp[tcp["jain"].notna()])
    if rows["variant"].nunique() < 2:
        return
    by_name = by_variant(rows)
    parts = [
        (cases.case_words(case), case_rows)
        for case, case_rows in few_cases(by_name, varied_axes(by_name))
    ]
    panels, data = share_panels(parts)
    most = max(len(panel.y.names) for panel in panels)
    yield Figure(
        stem=cases.stem(results.key, "shares-of-goodput"),
        title=shares_message(data),
        panels=in_rows(panels, min(2, len(panels))),
        reading="What each got of all that the flows received.",
        foot=cases.foot(results, rows, SHARES_READING),
        row_inches=0.22 * most + 0.75,
        data=data,
    )


def over_seconds(results: ExperimentResults) -> Iterator[Figure]:
    """Yield throughput over what the link can carry, delay and queue, all over time."""
    rows = drawn(results)
    rows = flows_apart(rows[~_silent(rows)])
    if rows.empty:
        return
    parts = [
        (cases.case_words(case), case_rows)
        for case, case_rows in few_cases(rows, others(rows, series="variant"), MAX_TIMELINES)
    ]
    drawing = over_time.figure(parts, results.plotted, results.trials)
    if drawing is None:  # flows of a few packets
        return
    several = rows.groupby(["trial", "variant"])["flow"].nunique().gt(1).any()
    together = " Flows of one variant are added." if several else ""
    count = rows["seed"].nunique()
    bands = "; bands: 95 % interval (Student's t)" * (count >= MIN_SEEDS_OF_A_SPREAD)
    named = "Throughput, delay and queue over time"
    axis = main_axis(few_series(results))
    by_case = not axis or not load_sweep.is_number(few_series(results), axis)
    sentence = by_case and messages.comparison(few_series(results), SERIES)
    yield dataclasses.replace(
        drawing,
        stem=cases.stem(results.key, "throughput-over-time"),
        title=sentence or messages.spread(few_series(results), SERIES) or f"{named}.",
        foot=cases.foot(results, rows, f"lines: mean over the seeds{bands}" * (count > 1)),
        reading=f"{named}, and what the link could carry.{together}",
    )


def flows_apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a variant for each flow where there is one variant: who shares is asked.

    Of more flows than a legend can tell apart, the variant stays.
    """
    if rows["variant"].nunique() > 1 or not 1 < rows["flow"].nunique() <= SINGLE_FLOWS:
        return rows
    return rows.assign(variant=rows["flow"])


def few_series(results: ExperimentResults) -> pd.DataFrame:
    """Return the rows with their series; many flows of a variant are one row, their mean."""
    rows = named(results)
    if rows.empty or rows.groupby(["trial", "variant"])["flow"].nunique().max() <= SINGLE_FLOWS:
        return rows
    return variant_means(rows)


def sweeps(results: ExperimentResults) -> Iterator[Figure]:
    """Throughput, drops and delay over the main axis; without one, side by side per variant."""
    rows = few_series(results)
    axis = main_axis(rows)
    if rows.empty or not measures(rows):
        return
    if not axis:
        rows, axis = rows.assign(**{f"{AXIS}flows": rows[SERIES]}), "flows"
    for case, case_rows in few_cases(rows, others(rows, axis)):
        if len(case_rows[[SERIES, AXIS + axis]].drop_duplicates()) < 2:  # a number needs no figure
            continue
        label = cases.case_words(case)
        over = "each flow" if (rows[SERIES] != rows["variant"]).any() else "each variant"
        over = over if axis == "flows" else load_sweep.axis_label(axis)
        if load_sweep.is_number(case_rows, axis):
            sentence = messages.by_number_of(case_rows, SERIES, axis)
        else:
            sentence = messages.drops(case_rows, SERIES) or messages.comparison(case_rows, SERIES)
        of = " of " if axis == "flows" else " by "
        yield dataclasses.replace(
            load_sweep.figure([(label, case_rows)], axis, measures(case_rows), SERIES),
            stem=cases.stem(results.key, "metrics-by", axis, *case.values()),
            title=sentence or f"Throughput, drops and delay{of}{over}.",
            foot=cases.foot(results, case_rows),
            reading=f"The means{of}{over}.",
        )


def maps(results: ExperimentResults) -> Iterator[Figure]:
    """Goodput and delay over two numeric axes at once."""
    rows = few_series(results)
    axes = None if rows.empty else heat_map.axes_of(rows, axes_beside(rows, SERIES))
    if axes is None:
        return
    for case, case_rows in few_cases(rows, others(rows, *axes)):
        drawing = heat_map.figure(case_rows, axes, SERIES)
        yield dataclasses.replace(
            drawing,
            stem=cases.stem(results.key, f"map-of-{axes[0]}-and-{axes[1]}", *case.values()),
            title=(f"With {cases.case_words(case)}: " if case else "") + drawing.title,
            foot=cases.foot(
                results, case_rows, "numbers: means; the stronger the colour, the more"
            ),
            reading="What the title says of one axis is the mean over the other.",
        )


def planes(results: ExperimentResults) -> Iterator[Figure]:
    """Throughput against delay, as paths along the main axis if it is numeric."""
    rows = few_series(results).dropna(subset=[plane.X, plane.Y])
    if rows.empty:
        return
    axis = main_axis(rows)
    path = axis if axis and load_sweep.is_number(rows, axis) else ""
    parts = [
        (cases.case_words(case), case_rows)
        for case, case_rows in few_cases(rows, others(rows, path))
    ]
    reading = f"lines run along {load_sweep.axis_label(path)}, whose ends are named" if path else ""
    yield dataclasses.replace(
        plane.figure(parts, SERIES, path),
        stem=cases.stem(results.key, "throughput-against-delay"),
        title=messages.corner(rows, SERIES) or "Throughput against delay.",
        foot=cases.foot(results, rows, reading or plane.reading(rows)),
        reading="Throughput and one-way delay at once; up and to the left is better.",
    )


def distributions(results: ExperimentResults) -> Iterator[Figure]:
    """Round trips and one-way delays, at up to four values of the main axis, or three of more."""
    rows = named(results)
    if rows.empty or not _has(results, *distribution.DELAY_KINDS):
        return
    axis = main_axis(rows)
    for case, case_rows in few_cases(rows, others(rows, axis), MAX_DELAYS):
        parts = [part for part in _parts(case_rows, axis) if len(part[1])]
        if not parts:
            continue
        figure = distribution.figure(parts, results.digest, SERIES)
        label = cases.case_words(case)
        there = case_rows[AXIS + axis].nunique() if axis else 1
        few = f" {len(parts)} of {there} values of {axis} are shown." if len(parts) < there else ""
        start = f"With {label}: " if label else ""
        yield dataclasses.replace(
            figure,
            stem=cases.stem(results.key, "delay-distribution", *case.values()),
            title=start + (_medians(figure.data) or "How long packets take."),
            foot=cases.foot(results, case_rows, distribution.DISTRIBUTION_READING),
            reading="The share of packets acknowledged (above) and delivered (below) within a "
            f"given time.{few}",
        )


def _parts(rows: pd.DataFrame, axis: str) -> list[tuple[str, pd.DataFrame]]:
    column = AXIS + axis
    rows = rows.dropna(subset=[column]) if axis else rows  # trials of another run may have no value
    if not axis or rows.empty:
        return [("", rows)]
    if load_sweep.is_number(rows, axis):
        values = sorted(rows[column].unique())
        few = cases.exemplary(values)
    else:
        values = list(cases.papers_first(rows[column].unique()))
        few = values[:FEW_PARTS]
    values = values if len(values) <= MAX_PARTS else few
    return [
        (f"{load_sweep.axis_label(axis)}: {cases.text(value)}", rows[rows[column] == value])
        for value in values
    ]


def few_cases(
    rows: pd.DataFrame, axes: Sequence[str], most: int = MAX_CASES
) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the first cases, so that a report stays readable."""
    shown = [name for name in varied_axes(rows) if name not in axes]
    yield from itertools.islice(cases.split(rows, axes, shown), most)


def _has(results: ExperimentResults, *kinds: str) -> bool:
    """Whether the trials' digests have any of these."""
    return not results.digest.empty and bool(results.digest["what"].isin(kinds).any())


def _medians(data: pd.DataFrame) -> str:
    half = data[(data["fraction"] == 0.5) & (data["what"] == RTT_QUANTILES)]
    if half.empty:
        return ""
    ordered = half.sort_values("ms")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    if len(half) == 1:
        return f"Half of the round trips take at most {low['ms']:.3g} ms."
    return (
        f"Half of the round trips take at most {low['ms']:.3g} ms ({_of(low)}), "
        f"or {high['ms']:.3g} ms ({_of(high)})."
    )


def _of(row: pd.Series) -> str:
    head, _, value = str(row["part"]).rpartition(": ")
    name, _, unit = head.removesuffix(")").partition(" (")
    part = value if name in messages.SPEAKING_AXES else f"{name} {value} {unit}".strip()
    return ", ".join(filter(None, (messages.said_name(str(row[SERIES])), part)))
