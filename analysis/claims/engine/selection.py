"""The trials that a claim is tested on, and samples of them: one number per seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.claims.engine.answers import Claim, Evidence, Reading
from analysis.claims.engine.contrasts import Sample
from analysis.claims.engine.reference import Reference
from analysis.metrics.axes import AXIS, with_axes
from analysis.metrics.per_second import NotMeasured
from analysis.metrics.valid_trials import counted
from testbed.scenario import kernel_axis, variations
from testbed.scenario.model import BASE_KERNEL

MODERN = "modern"
VARIATION = f"{AXIS}{variations.AXIS}"
KERNEL = f"{AXIS}{kernel_axis.AXIS}"
VARIED = "varied"  # a column of ours
NAMED = 8  # trials that an answer names
PROFILES = ("ns2", MODERN)  # in this order


@dataclass(frozen=True)
class Group:
    """An experiment's flows with one profile of the stacks; `folder` holds the trials."""

    experiment: str
    profile: str
    rows: pd.DataFrame
    folder: Path | None
    reference: Reference
    window: str = ""
    setting: str = ""
    reading: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other groups of its claim."""
        return (self.profile, self.window, self.setting, self.reading)

    def where(self, **axes: object) -> Group:
        """The part of it with these values on the axes: one value, or several of them."""
        return replace(self, rows=_with(self.rows, axes))

    @property
    def is_varied(self) -> bool:
        """Whether anything in it is other than as the paper has it (`apart`)."""
        return VARIED in self.rows and bool(self.rows[VARIED].any())

    def without_varied(self) -> Group:
        """The part of it that is as the paper has it."""
        return replace(self, rows=self.rows[~self.rows[VARIED]])

    def values(self, axis: str) -> list[object]:
        """The values present on an axis, in order."""
        if f"axis_{axis}" not in self.rows:
            return []
        return sorted(self.rows[f"axis_{axis}"].dropna().unique())

    def asked(self, axis: str, wanted: Collection[object]) -> Group:
        """The part with these values, all of which must be there."""
        missing = [str(each) for each in wanted if each not in self.values(axis)]
        if missing:
            raise NotMeasured(
                f"no usable trials with {axis} {', '.join(missing)} (profile {self.profile})",
                f"testbed run {self.experiment}",
            )
        return self.where(**{axis: wanted})

    def evidence(self) -> Evidence:
        """A few of its trials, spread evenly."""
        rows = self.where(setting=self.setting).rows if self.setting else self.rows
        names = list(dict.fromkeys(rows["trial"].astype(str)))
        step = max(1, -(-len(names) // NAMED))
        return Evidence(self.experiment, tuple(names[::step]))


def _column(rows: pd.DataFrame, name: str) -> str:
    for column in (f"axis_{name}", name):  # an axis is of the trial, a metric of one flow
        if column in rows:
            return column
    raise NotMeasured(f"the trials have no axis {name}")


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple | range) else [value]


def usable(metrics: pd.DataFrame) -> pd.DataFrame:
    """Flows of trials that ran and were not judged invalid: of one engine, the one with more
    trials, and of the longest duration at their values of the axes, because a shorter run is not a
    repeat of the full one."""
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
    return rows


def apart(rows: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The rows as the papers have them, and by variation the same with varied trials in their place
    wherever it changes something. Another kernel than the first one is a variation, too."""
    own = _variations(rows)
    rows = rows.drop(columns=[VARIATION, KERNEL], errors="ignore")
    plain = rows[own == ""]
    names = [str(name) for name in own.unique() if name]
    places = [str(name) for name in plain if str(name).startswith(AXIS)]

    def instead(name: str) -> pd.DataFrame:
        changed = rows[own == name]
        there = set(_places(changed, places))
        unchanged = [place not in there for place in _places(plain, places)]
        parts = plain[unchanged].assign(**{VARIED: False}), changed.assign(**{VARIED: True})
        return pd.concat(parts, ignore_index=True)

    return plain, {name: instead(name) for name in names}


def _variations(rows: pd.DataFrame) -> pd.Series[str]:
    """What is varied in each row, in words; empty where nothing is."""
    none = pd.Series("", index=rows.index)
    own = rows[VARIATION].fillna("").astype(str) if VARIATION in rows else none
    kernels = rows[KERNEL].fillna(BASE_KERNEL).astype(str) if KERNEL in rows else none
    first = BASE_KERNEL if (kernels == BASE_KERNEL).any() else kernels.min()
    words = own.map(lambda name: variations.WORDS.get(name, name))
    joined = words.where(words == "", words + ", ")
    return words.where(kernels == first, joined + "kernel " + kernels)


def _places(rows: pd.DataFrame, axes: list[str]) -> list[tuple[str, ...]]:
    return [tuple(map(str, place)) for place in rows[axes].itertuples(index=False)]


def groups(
    claim: Claim, rows: pd.DataFrame, folder: Path | None, reference: Reference
) -> Iterator[Group]:
    """The usable rows, one group per profile, setting and reading that was run; of the windows,
    only the one that fits the claim's paper, where it was run."""
    rows = _with(rows, claim.where)
    profile = rows["axis_profile"] if "axis_profile" in rows else pd.Series(MODERN, rows.index)
    found = [name for name in PROFILES if (profile == name).any()]
    for name in found:
        own, window = _window(rows[profile == name], claim.window)
        for setting, (reading, read) in product(claim.settings or ("",), _readings(claim, own)):
            yield Group(claim.experiment, name, read, folder, reference, window, setting, reading)


def _readings(claim: Claim, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each reading that was run, all of them for a claim without."""
    if not claim.readings:
        return [("", rows)]
    there = [each for each in claim.readings if _all_run(each, rows)]
    read = [(each.name, _with(rows, each.where)) for each in there]
    return [(name, own) for name, own in read if len(own)]


def _all_run(reading: Reading, rows: pd.DataFrame) -> bool:
    return all(
        f"axis_{name}" in rows and set(_listed(value)) <= set(rows[f"axis_{name}"])
        for name, value in reading.where.items()
    )


def _with(rows: pd.DataFrame, axes: Mapping[str, object]) -> pd.DataFrame:
    """The rows with these values: of an axis, or of a column."""
    for name, value in axes.items():
        rows = rows[rows[_column(rows, name)].isin(_listed(value))]
    return rows


def _window(rows: pd.DataFrame, wanted: str) -> tuple[pd.DataFrame, str]:
    if not wanted or "axis_window" not in rows:
        return rows, ""
    there = sorted(rows["axis_window"].dropna().unique())
    window = wanted if wanted in there else (there or [""])[0]
    return rows[rows["axis_window"] == window], window


def samples(
    rows: pd.DataFrame, metric: str, of: str, over: Sequence[str] = ()
) -> dict[str, Sample]:
    """For each value of column `of`: by seed, the mean over the cells of `over`.

    Only cells that all values have count, and only seeds that have all of these cells: means over
    different loads cannot be compared.
    """
    known = _cells(rows, metric, of, [name for name in over if name in rows])
    cells = [set().union(*seeds.values()) for seeds in known.values()]
    # in a fixed order, or the last digit of a mean would depend on Python's hashes
    in_all = sorted(set.intersection(*cells) if cells else set(), key=repr)
    return {
        name: {
            seed: float(np.mean([np.mean(own[cell]) for cell in in_all]))
            for seed, own in sorted(seeds.items())
            if in_all and own.keys() >= set(in_all)
        }
        for name, seeds in known.items()
    }


Cell = tuple[object, ...]


def _cells(
    rows: pd.DataFrame, metric: str, of: str, over: list[str]
) -> dict[str, dict[int, dict[Cell, list[float]]]]:
    """The known values by what they are of, seed and cell: plain loops, since tables are small
    and there are hundreds of them."""
    found: dict[str, dict[int, dict[Cell, list[float]]]] = {}
    cells = list(zip(*(rows[name] for name in over), strict=True)) or [()] * len(rows)
    for name, seed, cell, value in zip(rows[of], rows["seed"], cells, rows[metric], strict=True):
        if math.isfinite(value):
            own = found.setdefault(str(name), {}).setdefault(int(seed), {})
            own.setdefault(cell, []).append(value)
    return found


def sample(rows: pd.DataFrame, metric: str, over: Sequence[str] = ()) -> Sample:
    """The same of all rows together."""
    return samples(rows.assign(all="all"), metric, "all", over).get("all", {})


def sweeps(rows: pd.DataFrame, metric: str, along: str) -> dict[int, pd.Series[float]]:
    """By seed: the metric along an axis, averaged over whatever else differs; complete sweeps
    only."""
    table = rows.pivot_table(index="seed", columns=along, values=metric).dropna()
    return {int(float(str(seed))): row for seed, row in table.iterrows()}
