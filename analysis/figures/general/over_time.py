"""Throughput, delay and queue over time, from the trials' stored series: means over the seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.figures import style
from analysis.figures.figure import (
    TRIALS,
    Area,
    Axis,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointEvidence,
    legend_entries,
    share_limits,
)
from analysis.figures.means import trial_names
from analysis.figures.style import SeriesStyle
from analysis.metrics.digest import THROUGHPUT_SERIES
from analysis.results import page_series
from analysis.statistics.intervals import MIN_SEEDS_OF_A_SPREAD, student_quantile
from analysis.trials.capacity import capacity_of
from analysis.trials.packets import sampled_queue
from analysis.trials.series import Floats
from testbed.store.reading import Trial

Strings = npt.NDArray[np.str_]


def series(rows: pd.DataFrame, digest: pd.DataFrame, what: str = THROUGHPUT_SERIES) -> pd.DataFrame:
    """One row per instant, over all trials of the rows: mean, the ends of its interval, n."""
    values = series_of(rows, digest, [what])
    table = _with_intervals(values["x"].to_numpy(), values["value"].to_numpy())
    table[TRIALS] = [trial_names(rows)] * len(table)
    return table


def _with_intervals(times: Floats, values: Floats) -> pd.DataFrame:
    """Return the mean of each instant's values, the ends of its interval (Student's t), and n."""
    table = pd.Series(values).groupby(times).agg(["mean", "std", "count"])
    n = table["count"].to_numpy()
    quantiles = np.array([student_quantile(float(max(each - 1, 1))) for each in n])
    half = (quantiles * table["std"] / np.sqrt(n)).where(n >= MIN_SEEDS_OF_A_SPREAD)
    mean = table["mean"]
    table = pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half, "n": n})
    return table.rename_axis("time_s").reset_index()


def series_of(rows: pd.DataFrame, digest: pd.DataFrame, whats: Sequence[str]) -> pd.DataFrame:
    """Return some kinds of series of the rows' flows."""
    of_trials = digest["trial"].isin(rows["trial"].unique())  # their flows are found among few
    chosen = digest[of_trials & digest["what"].isin(whats)]
    known = [rows[name].unique().astype(str) for name in ("trial", "flow")]
    return chosen[np.isin(_places(chosen, *known), _places(rows, *known))]


def _places(table: pd.DataFrame, trials: Strings, flows: Strings) -> npt.NDArray[np.int32]:
    """Return each row's flow of a trial as a number, which takes less than an index of both."""
    trial, flow = _place(table["trial"], trials), _place(table["flow"], flows)
    return np.where(flow < 0, np.int32(-1), trial * np.int32(len(flows)) + flow)


def _place(names: pd.Series[str], known: Strings) -> npt.NDArray[np.int32]:
    """Return the place of each name among those that are known, or -1."""
    categories = pd.Categorical(names)
    of_categories = pd.Index(known).get_indexer(categories.categories).astype(np.int32)
    places: npt.NDArray[np.int32] = of_categories[categories.codes]
    return places


@dataclass(frozen=True)
class PlottedRow:
    """A row of panels: the kinds of series that it can show, the best one first."""

    kinds: Mapping[str, str]  # a kind of a page's series → the axis's label
    added: bool = False  # flows of one variant are added, not averaged


PLOTTED_ROWS = (
    PlottedRow({"throughput": "throughput (Mbit/s)"}, added=True),
    PlottedRow({"delay": "one-way delay (ms)", "rtt": "smoothed RTT (ms)"}),
    PlottedRow({"packets": "queue (packets)", "kilobytes": "queue (kB)"}),
)
MAX_SEEDS_DRAWN = 20  # of a case: means of more look the same
DRAWN_POINTS = 450  # of one trial's line: more are not told apart at this width
QUEUE_STEPS = 400  # of the mean of several trials' queues
SILENT_STEPS = 4  # usual steps without a mean that interrupt a line; fewer are chance
BINNED = ("throughput", "delay")  # means of steps of time; others are samples, where they change
CAPACITY_STEPS = 120  # of a trace's rate
RESOLUTION = 1e-3  # of times and values in the page
CAPACITY = "capacity of the link"
CAPACITY_COLOUR = "#E4E4E4"
Plotted = Mapping[str, tuple[Floats, Floats]]  # of a flow: by kind, times and values


def figure(
    parts: Sequence[tuple[str, pd.DataFrame]], plotted: Mapping[int, str], trials: Sequence[Trial]
) -> Figure | None:
    """Return a column of panels per part: throughput over what the link can carry, delay, queue.

    Each variant has a line, of all its flows. `plotted` has what a page plots of each trial, by its
    number, and `trials` are these trials. None where no series has two points.
    """
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), "variant")
    by_name = {trial.path.name: trial for trial in trials}
    columns, tables = [], []
    for label, rows in parts:
        few_rows = _few_seeds(rows)
        numbers = few_rows["number"].unique()
        flows = {each: page_series.unpacked(plotted[each]) for each in numbers if each in plotted}
        column = [_panel(row, few_rows, flows, looks) for row in PLOTTED_ROWS]
        tables += [table.assign(part=label) for _, table in column]
        first = dataclasses.replace(column[0][0], title=label)
        if (capacity := _capacity(few_rows, by_name)) is not None:
            first = dataclasses.replace(first, marks=(capacity, *first.marks))
        columns.append([first, *(panel for panel, _ in column[1:])])
    data = pd.concat(tables, ignore_index=True)
    if data.empty:
        return None
    until_s = max(trial.scenario.duration_s for trial in trials)
    kept = [line for line in zip(*columns, strict=True) if any(panel.marks for panel in line)]
    shown = {mark.series for line in kept for panel in line for mark in panel.marks}
    area = LegendEntry(CAPACITY, CAPACITY_COLOUR, kind="area")
    has_area = any(isinstance(mark, Area) and mark.series == CAPACITY
                   for panel in kept[0] for mark in panel.marks)  # fmt: skip
    return Figure(
        stem="",
        title="",
        panels=_labelled(kept, until_s),
        legend=(
            *legend_entries({name: look for name, look in looks.items() if name in shown}),
            *((area,) if has_area else ()),
        ),
        row_inches=1.35,
        data=data,
    )


def _few_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    first = sorted(rows["seed"].unique())[:MAX_SEEDS_DRAWN]
    return rows[rows["seed"].isin(first)]


def _labelled(lines: Sequence[Sequence[Panel]], until_s: float) -> tuple[tuple[Panel, ...], ...]:
    """Give the panels of a row one range, and name each axis once."""
    labelled = []
    for row, line in enumerate(lines):
        label = "time (s)" if row == len(lines) - 1 else ""
        x = Axis(label, limits=(0.0, until_s), resolution=RESOLUTION)
        panels = [dataclasses.replace(panel, x=x) for panel in line]
        panels = share_limits(panels, "y")
        label = next((panel.y.label for panel in line if panel.y.label), "")
        labelled.append(
            tuple(
                dataclasses.replace(
                    panel, y=dataclasses.replace(panel.y, label="" if place else label)
                )
                for place, panel in enumerate(panels)
            )
        )
    return tuple(labelled)


def _panel(
    row: PlottedRow,
    rows: pd.DataFrame,
    flows: Mapping[int, Mapping[str, Plotted]],
    looks: Mapping[str, SeriesStyle],
) -> tuple[Panel, pd.DataFrame]:
    """Return a panel with a line for each variant, and their table."""
    there = {kind for of_flow in flows.values() for each in of_flow.values() for kind in each}
    kind = next((each for each in row.kinds if each in there), "")
    marks: list[Mark] = []
    tables = [pd.DataFrame(columns=["time_s", "mean", "low", "high", "n", "variant", "what"])]
    for name, look in looks.items():
        members = rows[rows["variant"] == name]
        histories = []
        for number, of_flow in members.groupby("number")["flow"]:
            of_trial = flows.get(int(str(number)), {})
            pair = _of_trial(row, kind, [of_trial.get(each, {}) for each in of_flow])
            histories += [pair] if pair else []
        table = mean_of(histories, sampled=kind not in BINNED)
        if len(table) > 1:
            table[TRIALS] = [trial_names(members)] * len(table)
            has_interval = table["n"].max() >= MIN_SEEDS_OF_A_SPREAD
            # without one, the page has none to show under the pointer
            shown = table if has_interval else table.drop(columns=["low", "high", "n"])
            marks += mean_curve(shown, look, name, band=has_interval, steps=kind not in BINNED)
            tables.append(table.assign(variant=name, what=row.kinds[kind]))
    if kind in ("packets", "kilobytes") and (queue := _one_queue(rows, marks, looks)):
        marks = queue
    y = Axis(row.kinds.get(kind, ""), limits=(0, None), tick_count=5, resolution=RESOLUTION)
    return Panel(marks, y=y), pd.concat(tables[1:] or tables, ignore_index=True)


def _one_queue(
    rows: pd.DataFrame, marks: Sequence[Mark], looks: Mapping[str, SeriesStyle]
) -> list[Mark]:
    """Return the first line in grey where all variants share each trial, and so its queue."""
    shared = rows.groupby("number")["variant"].nunique().min() == rows["variant"].nunique()
    if not shared or len(looks) < 2 or rows["variant"].nunique() < 2:
        return []
    curves = [mark for mark in marks if isinstance(mark, Curve)]
    same = all(np.array_equal(each.y, curves[0].y, equal_nan=True) for each in curves)
    return [dataclasses.replace(curves[0], colour=style.GREY, series="")] if same else []


def _of_trial(row: PlottedRow, kind: str, flows: Sequence[Plotted]) -> tuple[Floats, Floats] | None:
    """Return a variant's series in a trial: the sum or the mean of its flows'."""
    parts = [each[kind] for each in flows if kind in each]
    if not parts:
        return None
    if kind not in BINNED:  # samples: of one queue
        return page_series.thinned(*parts[0], DRAWN_POINTS)
    if len(parts) == 1:
        return parts[0]
    times, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    x, places = np.unique(np.round(times, 6), return_inverse=True)
    sums = np.bincount(places, weights=values).astype(np.float64)
    return x, sums if row.added else sums / np.bincount(places)


def mean_of(curves: Sequence[tuple[Floats, Floats]], *, sampled: bool) -> pd.DataFrame:
    """Return one row per instant, over some trials; a time without values interrupts the line.

    What was sampled holds until it changes: between its points nothing is missing.
    """
    if not curves:
        return pd.DataFrame(columns=["time_s", "mean", "low", "high", "n"])
    if not sampled:
        curves = [_with_gaps(*each) for each in curves]
    if len(curves) == 1:
        x, y = curves[0]
        return pd.DataFrame({"time_s": x, "mean": y, "low": np.nan, "high": np.nan, "n": 1})
    if any(len(x) != len(curves[0][0]) or not np.allclose(x, curves[0][0]) for x, _ in curves):
        curves = [_on_grid(*each, _grid(curves)) for each in curves]
    times = np.tile(curves[0][0], len(curves))
    return _with_intervals(times, np.concatenate([y for _, y in curves]))


def _with_gaps(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Interrupt a line of means where nothing was sent for several of its usual steps."""
    gaps = np.diff(x)
    if not len(gaps):
        return x, y
    step = float(np.median(gaps))
    after = np.flatnonzero(gaps > (SILENT_STEPS + 0.5) * step)
    return np.insert(x, after + 1, x[after] + step), np.insert(y, after + 1, np.nan)


def _grid(curves: Sequence[tuple[Floats, Floats]]) -> Floats:
    first, last = min(x[0] for x, _ in curves), max(x[-1] for x, _ in curves)
    return np.linspace(first, last, QUEUE_STEPS)


def _on_grid(x: Floats, y: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Hold each value until the next one."""
    places = np.searchsorted(x, grid, side="right") - 1
    return grid, np.where(places >= 0, y[np.maximum(places, 0)], np.nan)


def _capacity(rows: pd.DataFrame, trials: Mapping[str, Trial]) -> Area | None:
    """Return what the link of these flows' queue can carry, if they share one."""
    trial = trials[str(rows["trial"].iloc[0])]
    names = set(rows[rows["trial"] == trial.path.name]["flow"])
    queues = [sampled_queue(trial, flow) for flow in trial.record.flows if flow.name in names]
    if not queues or queues[0] is None or any(each != queues[0] for each in queues):
        return None
    until_s = trial.scenario.duration_s
    x, y = capacity_of(trial, queues[0]).steps(0.0, until_s, until_s / CAPACITY_STEPS)
    return Area(x, np.zeros(len(x)), y, CAPACITY_COLOUR, opacity=1.0, steps=True, series=CAPACITY)


def mean_curve(
    table: pd.DataFrame, look: SeriesStyle, name: str, *, band: bool = True, steps: bool = False
) -> tuple[Mark, ...]:
    """Return the mean over time with the band of its interval."""
    curve = Curve(
        table["time_s"],
        table["mean"],
        look.colour,
        width=0.9,
        steps=steps,
        series=name,
        evidence=PointEvidence.from_table(table),
    )
    if not band:
        return (curve,)
    low = table["low"].clip(lower=0)
    area = Area(
        table["time_s"], low, table["high"], look.colour, opacity=0.2, steps=steps, series=name
    )
    return area, curve


def trial_curves(tables: Iterable[pd.DataFrame], look: SeriesStyle, name: str) -> tuple[Curve, ...]:
    """Return single trials as thin lines: where they diverge, a band around would mislead."""
    return tuple(
        Curve(
            table["time_s"],
            table["mean"],
            look.colour,
            width=0.45,
            opacity=0.55,
            series=name,
            evidence=PointEvidence.from_table(table),
        )
        for table in tables
    )


def singles(rows: pd.DataFrame, digest: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the series of each trial."""
    for _, of_trial in rows.groupby("trial", sort=False):
        yield series(of_trial, digest)
