"""Throughput over time, from the trials' cached series: means over the seeds with their band."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    Mark,
    Panel,
    PointEvidence,
    in_rows,
    legend_entries,
)
from analysis.figures.means import trial_names
from analysis.figures.style import SeriesStyle
from analysis.metrics.digest import THROUGHPUT_SERIES
from analysis.statistics.intervals import student_quantile

Strings = npt.NDArray[np.str_]


def series(rows: pd.DataFrame, digest: pd.DataFrame, what: str = THROUGHPUT_SERIES) -> pd.DataFrame:
    """One row per instant, over all trials of the rows: mean, the ends of its interval, n."""
    own = series_of(rows, digest, [what])
    table = own.groupby("x")["value"].agg(["mean", "std", "count"]).reset_index()
    n = table["count"].to_numpy(dtype=float)
    half = [student_quantile(max(each - 1, 1)) for each in n] * table["std"] / np.sqrt(n)
    return pd.DataFrame(
        {
            "time_s": table["x"],
            "mean": table["mean"],
            "low": table["mean"] - half,
            "high": table["mean"] + half,
            "n": table["count"],
            TRIALS: [trial_names(rows)] * len(table),
        }
    )


def series_of(rows: pd.DataFrame, digest: pd.DataFrame, whats: Sequence[str]) -> pd.DataFrame:
    """Return some kinds of series of the rows' flows."""
    of_trials = digest["trial"].isin(rows["trial"].unique())  # their flows are found among few
    own = digest[of_trials & digest["what"].isin(whats)]
    known = [rows[name].unique().astype(str) for name in ("trial", "flow")]
    return own[np.isin(_places(own, *known), _places(rows, *known))]


def _places(table: pd.DataFrame, trials: Strings, flows: Strings) -> npt.NDArray[np.int32]:
    """Return each row's flow of a trial as a number, which takes less than an index of both."""
    trial, flow = _place(table["trial"], trials), _place(table["flow"], flows)
    return np.where(flow < 0, np.int32(-1), trial * np.int32(len(flows)) + flow)


def _place(names: pd.Series[str], known: Strings) -> npt.NDArray[np.int32]:
    """Return the place of each name among those that are known, or -1."""
    own = pd.Categorical(names)
    of_categories = pd.Index(known).get_indexer(own.categories).astype(np.int32)
    places: npt.NDArray[np.int32] = of_categories[own.codes]
    return places


def by_variant(rows: pd.DataFrame, digest: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and series in which a trial's flows of one variant are one flow: their sum."""
    of = rows.set_index(["trial", "flow"])["variant"]
    near = series_of(rows, digest, [THROUGHPUT_SERIES])
    keys = pd.MultiIndex.from_frame(near[["trial", "flow"]])
    own = near.assign(flow=of.reindex(keys).to_numpy()).dropna(subset=["flow"])
    sums = own.groupby(["trial", "flow", "what", "x"])[["value"]].sum().reset_index()
    return rows.assign(flow=rows["variant"]).drop_duplicates(["trial", "flow"]), sums


def figure(parts: Sequence[tuple[str, pd.DataFrame]], digest: pd.DataFrame) -> Figure:
    """Return one panel per part, one line per variant, each the sum of its flows."""
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), "variant")
    found: list[Panel] = []
    tables = []
    for words, rows in parts:
        flows, sums = by_variant(rows, digest)
        marks: list[Mark] = []
        for name, look in looks.items():
            table = series(flows[flows["flow"] == name], sums)
            if len(table):
                marks += mean_curve(table, look, name)
                tables.append(table.assign(variant=name, part=words))
        x = Axis("time (s)" if len(found) == len(parts) - 1 else "", margin=0)
        y = Axis("throughput (Mbit/s)", limits=(0, None))
        found.append(Panel(marks, x, y, title=words))
    return Figure(
        stem="",
        title="",
        panels=in_rows(found, 1),
        legend=legend_entries(looks),
        row_inches=1.6,
        data=pd.concat(tables, ignore_index=True),
    )


def mean_curve(
    table: pd.DataFrame, look: SeriesStyle, name: str, *, band: bool = True
) -> tuple[Mark, ...]:
    """Return the mean over time with the band of its interval."""
    curve = Curve(
        table["time_s"],
        table["mean"],
        look.colour,
        width=0.9,
        series=name,
        evidence=PointEvidence.from_table(table),
    )
    low = table["low"].clip(lower=0)
    area = Area(table["time_s"], low, table["high"], look.colour, opacity=0.2, series=name)
    return (area, curve) if band else (curve,)


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
    for _, own in rows.groupby("trial", sort=False):
        yield series(own, digest)
