"""The samples that claims are tested on: rows of the metrics, selected, grouped and averaged.

ns-2's results in the same experiments (`Reference`) are shown beside ours. A paper about ns-2 has
its claims tested on them as well, by the same tests: `Paper.simulated`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.claims.comparisons import Sample
from analysis.claims.judgement import TrialEvidence
from analysis.metrics.digest import NotMeasured
from analysis.metrics.metric_rows import AXIS, counted, invalid, with_axes
from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.variations import KERNEL_AXIS
from testbed.store.records import Status


@dataclass(frozen=True)
class Reference:
    """A folder with ns-2's results as CSV files, or no folder."""

    folder: Path | None = None

    def table(self, name: str) -> pd.DataFrame:
        """Read a file of the folder; the table is empty if the file is not there."""
        if self.folder is None or not (self.folder / name).is_file():
            return pd.DataFrame()
        return _read(self.folder / name)


@functools.lru_cache(8)
def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


MODERN = "modern"
KERNEL_COLUMN = f"{AXIS}{KERNEL_AXIS}"
VARIED = "varied"  # a column of ours
MAX_EVIDENCE_TRIALS = 8  # trials that an answer names


@dataclass(frozen=True, eq=False)
class Selection:
    """Rows of the metrics, with a cache of the parts selected from them.

    Dozens of claims select the same few parts, and selecting rows takes longer than testing them.
    """

    rows: pd.DataFrame
    unusable: pd.DataFrame = field(default_factory=pd.DataFrame)  # `unusable_rows`
    _parts: dict[tuple[str, tuple[object, ...]], Selection] = field(default_factory=dict)
    _values: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def where(self, axes: Mapping[str, object]) -> Selection:
        """Select the rows with these values of axes or columns."""
        chosen = self
        for name, value in axes.items():
            chosen = chosen._part(name, tuple(values_of(value)))
        return chosen

    def _part(self, name: str, values: tuple[object, ...]) -> Selection:
        if (name, values) not in self._parts:
            chosen, unusable = (
                rows if rows.empty else rows[rows[_column(rows, name)].isin(values)]
                for rows in (self.rows, self.unusable)
            )
            self._parts[name, values] = Selection(chosen, unusable)
        return self._parts[name, values]

    def values(self, axis: str) -> tuple[object, ...]:
        """Return the values present on an axis, in order; none if there is no such axis."""
        if axis not in self._values:
            column = self.rows.get(f"{AXIS}{axis}", pd.Series(dtype=object))
            self._values[axis] = tuple(sorted(column.dropna().unique()))
        return self._values[axis]


@dataclass(frozen=True)
class Group:
    """An experiment's flows with one profile of the stacks; `folder` holds the trials."""

    experiment: str
    profile: str
    selection: Selection
    folder: Path | None
    reference: Reference
    window: str = ""
    setting: str = ""
    reading: str = ""

    @property
    def rows(self) -> pd.DataFrame:
        """A row for each flow."""
        return self.selection.rows

    @property
    def unusable(self) -> int:
        """The number of trials at the same places that failed or were judged invalid."""
        rows = self.selection.unusable
        return 0 if rows.empty else int(rows["trial"].nunique())

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The values that distinguish the group from the others of its claim."""
        return (self.profile, self.window, self.setting, self.reading)

    def where(self, **axes: object) -> Group:
        """Select the part with these values on the axes: one value or several for each."""
        return replace(self, selection=self.selection.where(axes))

    @property
    def is_varied(self) -> bool:
        """Whether a trial in it is of another kernel than the answer (`split_kernels`)."""
        return VARIED in self.rows and bool(self.rows[VARIED].any())

    def without_varied(self) -> Group:
        """Select the trials of the kernel that the answer is of."""
        rows = self.rows[~self.rows[VARIED]]
        return replace(self, selection=Selection(rows, self.selection.unusable))

    def values(self, axis: str) -> tuple[object, ...]:
        """Return the values present on an axis, in order."""
        return self.selection.values(axis)

    def asked(self, axis: str, wanted: Collection[object]) -> Group:
        """Select the part with these values; raise `NotMeasured` if one of them is missing."""
        missing = [str(each) for each in wanted if each not in self.values(axis)]
        if missing:
            raise NotMeasured(
                f"no usable trials with {axis} {', '.join(missing)} (profile {self.profile})",
                f"testbed run {self.experiment}",
            )
        return self.where(**{axis: wanted})

    def evidence(self) -> TrialEvidence:
        """Return a few trials, spread evenly."""
        rows = self.where(setting=self.setting).rows if self.setting else self.rows
        names = list(dict.fromkeys(rows["trial"].astype(str)))
        step = max(1, -(-len(names) // MAX_EVIDENCE_TRIALS))
        return TrialEvidence(self.experiment, tuple(names[::step]))


def _column(rows: pd.DataFrame, name: str) -> str:
    for column in (f"axis_{name}", name):  # an axis is of the trial, a metric of one flow
        if column in rows:
            return column
    raise NotMeasured(f"the trials have no axis {name}")


def values_of(value: object) -> list[object]:
    """Return the values of one or several."""
    return list(value) if isinstance(value, list | tuple | range) else [value]


def usable(metrics: pd.DataFrame) -> pd.DataFrame:
    """Select the flows that claims may be tested on.

    Their trials ran, were not judged invalid, are of the engine with more trials, and have the
    longest duration at their values of the axes: a shorter run is not a repeat of the full one.
    """
    rows = counted(metrics)
    if rows["engine"].nunique() > 1:  # trials of two engines are not repeats of each other
        rows = rows[rows["engine"] == rows["engine"].mode()[0]]
    rows = with_axes(rows)
    if "axis_duration_s" in rows:
        axes = (str(name) for name in rows if str(name).startswith("axis_"))
        place = [name for name in axes if name != "axis_duration_s"]
        longest = (
            rows.groupby(place, dropna=False)["axis_duration_s"].transform("max")
            if place
            else rows["axis_duration_s"].max()
        )
        rows = rows[rows["axis_duration_s"] == longest]
    return _as_objects(rows)


def unusable_rows(metrics: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Select the flows of trials that failed or were judged invalid, and else are as `rows` are."""
    if len(counted(metrics)) == len(metrics):
        return pd.DataFrame()
    every = with_axes(metrics)
    unusable = every[
        ((every["status"] != Status.OK) | invalid(every)) & (_other_kernels(every) == "")
    ]
    alike = [name for name in ("engine", "axis_duration_s") if name in rows]
    return unusable[unusable[alike].isin({name: list(rows[name]) for name in alike}).all(axis=1)]


def _as_objects(rows: pd.DataFrame) -> pd.DataFrame:
    """Store texts as Python's strings.

    Claims select rows a thousand times; pandas takes them from one block of objects at once, but
    from Arrow's columns one by one.
    """
    texts: list[str] = list(rows.select_dtypes("str"))
    return rows.astype(dict.fromkeys(texts, "object")).copy()  # a copy is of whole blocks


def split_kernels(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return the rows of the first kernel, and a table for each other one.

    In such a table, the kernel's trials take the place of the first one's; the other rows are the
    same.
    """
    of_kernels = _other_kernels(rows)
    rows = rows.drop(columns=[KERNEL_COLUMN], errors="ignore")
    plain = rows[of_kernels == ""]
    names = [str(name) for name in of_kernels.unique() if name]
    places = [str(name) for name in plain if str(name).startswith(AXIS)]

    def instead(name: str) -> pd.DataFrame:
        changed = rows[of_kernels == name]
        there = set(_places(changed, places))
        unchanged = [place not in there for place in _places(plain, places)]
        parts = plain[unchanged].assign(**{VARIED: False}), changed.assign(**{VARIED: True})
        return pd.concat(parts, ignore_index=True)

    return plain, {name: instead(name) for name in names}


def _other_kernels(rows: pd.DataFrame) -> pd.Series[str]:
    """Name the kernel of each row; empty if it is the first one."""
    none = pd.Series("", index=rows.index)
    if KERNEL_COLUMN not in rows:
        return none
    kernels = rows[KERNEL_COLUMN].fillna(BASE_KERNEL).astype(str)
    first = BASE_KERNEL if (kernels == BASE_KERNEL).any() else kernels.min()
    return none.where(kernels == first, "kernel " + kernels)


def _places(rows: pd.DataFrame, axes: list[str]) -> list[tuple[str, ...]]:
    return [tuple(map(str, place)) for place in rows[axes].itertuples(index=False)]


def samples(
    rows: pd.DataFrame, metric: str, of: str, over: Sequence[str] = ()
) -> dict[str, Sample]:
    """Return, for each value of column `of`, the means over the cells of `over` by seed.

    Only cells that all values have count, and only seeds that have all of these cells: means over
    different loads cannot be compared.
    """
    return _samples(rows, metric, rows[of].tolist(), over)


def sample(rows: pd.DataFrame, metric: str, over: Sequence[str] = ()) -> Sample:
    """Return the means of all rows over the cells of `over`, by seed."""
    return _samples(rows, metric, ["all"] * len(rows), over).get("all", {})


def _samples(
    rows: pd.DataFrame, metric: str, names: Sequence[object], over: Sequence[str]
) -> dict[str, Sample]:
    known = _cells(rows, metric, names, [name for name in over if name in rows])
    cells = [set().union(*seeds.values()) for seeds in known.values()]
    # in a fixed order, or the last digit of a mean would depend on Python's hashes
    in_all = sorted(set.intersection(*cells) if cells else set(), key=repr)
    return {
        name: {
            seed: float(np.mean([np.mean(values[cell]) for cell in in_all]))
            for seed, values in sorted(seeds.items())
            if in_all and values.keys() >= set(in_all)
        }
        for name, seeds in known.items()
    }


Cell = tuple[object, ...]


def _cells(
    rows: pd.DataFrame, metric: str, names: Sequence[object], over: list[str]
) -> dict[str, dict[int, dict[Cell, list[float]]]]:
    """Return the known values by name, seed and cell.

    In plain loops, since tables are small and there are hundreds of them.
    """
    by_series: dict[str, dict[int, dict[Cell, list[float]]]] = {}
    cells = list(zip(*(rows[name].tolist() for name in over), strict=True)) or [()] * len(rows)
    seeds, values = rows["seed"].tolist(), rows[metric].tolist()
    for name, seed, cell, value in zip(names, seeds, cells, values, strict=True):
        if math.isfinite(value):
            of_seed = by_series.setdefault(str(name), {}).setdefault(int(seed), {})
            of_seed.setdefault(cell, []).append(value)
    return by_series


def means(rows: pd.DataFrame, metric: str, of: Sequence[str], along: str) -> pd.DataFrame:
    """Return the metric by columns `of`, a column for each value of `along`; complete rows only.

    It is averaged over all other axes. A pivot table would take three times as long.
    """
    return rows.groupby([*of, along])[metric].mean().dropna().unstack().dropna()


def sweeps(rows: pd.DataFrame, metric: str, along: str) -> dict[int, pd.Series[float]]:
    """Return the metric along an axis by seed; complete sweeps only."""
    table = means(rows, metric, ["seed"], along)
    return {int(float(str(seed))): row for seed, row in table.iterrows()}
