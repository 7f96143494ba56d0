"""Two results folders, cell by cell: two kernels, two engines, or two commits.

A cell is a flow of a setting (counterparts.py says which trials are each other's). Where at
least two seeds are shared, cells are compared seed by seed, else by Welch.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.metrics.valid_trials import invalid
from analysis.results.table import cached_metrics
from analysis.statistics.counterparts import (
    labels,
    same_captures,
    setting_json,
    sides,
    unmatched,
)
from analysis.statistics.intervals import compare, compare_paired, known
from analysis.statistics.tolerances import COMPARABLE, OTHER, Tolerance
from testbed.errors import TestbedError
from testbed.store import Status, Trial, trials_in

NAN = float("nan")


class Verdict(enum.StrEnum):
    """The outcome for one metric of a cell. A question mark says that the interval crosses the
    tolerance, so other seeds might decide otherwise; the observed difference decides."""

    IDENTICAL = "identical"  # the captures are, byte for byte, and so are the numbers
    EQUAL = "equal"  # the numbers are
    WITHIN = "within"
    WITHIN_OPEN = "within?"
    BEYOND = "beyond"
    BEYOND_OPEN = "beyond?"
    ONE_SIDED = "known in one"

    @property
    def agrees(self) -> bool:
        """True if the verdict counts as agreement."""
        return self not in (Verdict.BEYOND, Verdict.BEYOND_OPEN, Verdict.ONE_SIDED)


@dataclass(frozen=True)
class Line:
    """A metric of a cell; a cell whose captures are identical has one line, without numbers."""

    setting: str
    flow: str
    trials: str  # how many on either side, and whether paired
    verdict: Verdict
    metric: str = ""
    a: float = NAN
    b: float = NAN
    difference: float = NAN  # b less a
    low: float = NAN
    high: float = NAN
    tolerance: Tolerance = OTHER


@dataclass(frozen=True)
class Report:
    """The comparison: its lines, and what could not be compared."""

    lines: tuple[Line, ...]
    only_a: tuple[str, ...]  # trials' names
    only_b: tuple[str, ...]
    other_status: tuple[str, ...]  # trials that ended otherwise, with both statuses
    not_run: tuple[str, ...]  # trials that ran in neither
    invalid: tuple[str, ...]  # trials of either that are left out, and why
    identical: int  # trials whose captures are identical
    matched: int  # trials that ran in both, by seed
    kernels: tuple[str, str] = ("", "")  # of A's trials and of B's, with their engines

    @property
    def agrees(self) -> bool:
        """True if nothing present in both differs beyond its tolerance."""
        agree = all(line.verdict.agrees for line in self.lines)
        return bool(self.lines) and agree and not self.other_status


def in_common(first: Path, second: Path) -> bool:
    """True if a scenario, whatever its seed, is in both."""
    a, b = ({setting_json(trial) for trial in trials_in(path)} for path in (first, second))
    return not a.isdisjoint(b)


Values = dict[Path, dict[str, dict[str, float]]]  # trial → flow → metric → value


def compare_results(first: Path, second: Path, tolerances: Mapping[str, Tolerance]) -> Report:
    """The trials of A and B that match, and those that do not."""
    a, b = sides(first, second)
    common = [key for key in a if key in b]
    if not common:
        raise TestbedError(
            f"{first} and {second}: no scenario in common",
            "trials match if their scenarios agree in all but the seed and what is captured",
        )
    pairs = [(a[key][s], b[key][s]) for key in common for s in sorted(a[key].keys() & b[key])]
    ran = [pair for pair in pairs if _statuses(pair) == {Status.OK}]
    same = frozenset(left.path for left, right in ran if same_captures(left, right))
    rows = _reduced(trial for side in (a, b) for key in common for trial in _ok(side[key]))
    refused = {path for path, table in rows.items() if invalid(table).any()}
    values = {path: _values(table) for path, table in rows.items()}
    lines: list[Line] = []
    for key, label in labels({key: next(iter(a[key].values())) for key in common}).items():
        left, right = (_without(side[key], refused) for side in (a, b))
        lines += _setting(_Cells(label, left, right, same, values), tolerances)
    return Report(
        tuple(lines),
        only_a=tuple(unmatched(a, b)),
        only_b=tuple(unmatched(b, a)),
        other_status=tuple(
            f"{left.path.name}: {left.record.status} in A, {right.record.status} in B"
            for left, right in pairs
            if len(_statuses((left, right))) > 1
        ),
        not_run=tuple(
            f"{left.path.name}: {left.record.status} in both"
            for left, right in pairs
            if left.record.status is right.record.status is not Status.OK
        ),
        invalid=tuple(
            f"{path.name}: {rows[path]['why'].iloc[0]}" for path in rows if path in refused
        ),
        identical=len(same),
        matched=len(ran),
        kernels=(_kernels(left for left, _ in ran), _kernels(right for _, right in ran)),
    )


def _kernels(trials: Iterable[Trial]) -> str:
    """`guest (Linux 6.1.0-testbed)`; several of them if the trials ran on several."""
    found = {(t.record.engine, " ".join(t.record.kernel.split()[:2])) for t in trials}
    return ", ".join(
        f"{engine} ({kernel})" if kernel else engine for engine, kernel in sorted(found)
    )


def _statuses(pair: tuple[Trial, Trial]) -> set[Status]:
    return {trial.record.status for trial in pair}


def _ok(seeds: Mapping[int, Trial]) -> list[Trial]:
    return [trial for trial in seeds.values() if trial.record.status is Status.OK]


def _without(seeds: Mapping[int, Trial], refused: set[Path]) -> dict[int, Trial]:
    return {seed: trial for seed, trial in seeds.items() if trial.path not in refused}


def _reduced(trials: Iterable[Trial]) -> dict[Path, pd.DataFrame]:
    """Each trial's metrics; several are reduced side by side."""
    every = list(trials)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(
            zip((trial.path for trial in every), pool.map(cached_metrics, every), strict=True)
        )


def _values(metrics: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The numbers of a trial's flows."""
    rows = metrics.set_index("flow")[list(COMPARABLE)].to_dict("index")
    return {
        str(flow): {str(name): float(v) for name, v in row.items()} for flow, row in rows.items()
    }


@dataclass(frozen=True)
class _Cells:
    """The trials of one setting on both sides."""

    label: str
    a: Mapping[int, Trial]
    b: Mapping[int, Trial]
    same: frozenset[Path]  # trials of A whose captures are those of B's
    values: Values

    @property
    def paired(self) -> tuple[int, ...]:
        """The seeds to compare by: those of both, if they are several or all that there are."""
        first, second = ({trial.scenario.seed for trial in _ok(x)} for x in (self.a, self.b))
        shared = first & second
        return tuple(sorted(shared)) if len(shared) > 1 or first == second else ()

    @property
    def used(self) -> tuple[list[Trial], list[Trial]]:
        """The trials that are compared."""
        if self.paired:
            return [self.a[seed] for seed in self.paired], [self.b[seed] for seed in self.paired]
        return _ok(self.a), _ok(self.b)

    @property
    def identical(self) -> bool:
        """True if all captures are identical."""
        return bool(self.paired) and all(trial.path in self.same for trial in self.used[0])

    def by_seed(self, trials: Iterable[Trial], flow: str, metric: str) -> dict[int, float]:
        """A metric's values."""
        return {t.scenario.seed: self.values[t.path][flow][metric] for t in trials}


def _setting(cells: _Cells, tolerances: Mapping[str, Tolerance]) -> list[Line]:
    """One line per flow and metric; for identical captures, only metrics that still differ."""
    if not all(cells.used):
        return []
    flows = [flow.name for flow in next(iter(cells.a.values())).scenario.flows]
    found = [_line(cells, flow, name, tolerances[name]) for flow in flows for name in tolerances]
    lines = [line for line in found if line is not None]
    if not cells.identical:
        return lines
    whole = Line(cells.label, "", _trials(cells), Verdict.IDENTICAL, "all captures")
    return [whole, *(line for line in lines if line.verdict is not Verdict.EQUAL)]


def _trials(cells: _Cells) -> str:
    if cells.paired:
        return str(len(cells.paired))
    return " + ".join(str(len(side)) for side in cells.used)


def _line(cells: _Cells, flow: str, metric: str, tolerance: Tolerance) -> Line | None:
    """One line of the comparison; None if the metric is known on neither side."""
    first, second = (cells.by_seed(side, flow, metric) for side in cells.used)
    a, b = known(first.values()), known(second.values())
    if not len(a) and not len(b):
        return None
    mean_a, mean_b = (float(each.mean()) if len(each) else NAN for each in (a, b))
    line = Line(cells.label, flow, _trials(cells), Verdict.ONE_SIDED, metric, mean_a, mean_b)
    line = dataclasses.replace(line, tolerance=tolerance)
    # a metric that is known of other seeds here than there is not the same cell's
    if cells.paired and [*map(math.isnan, first.values())] != [*map(math.isnan, second.values())]:
        return line
    if not len(a) or not len(b):
        return line
    found = compare_paired(second, first) if cells.paired else compare(b, a)
    equal = np.array_equal(a, b) if cells.paired else len({*a, *b}) == 1
    judged = judge(found.difference, found.low, found.high, tolerance.of(mean_a))
    verdict = Verdict.EQUAL if equal else judged
    return dataclasses.replace(
        line, verdict=verdict, difference=found.difference, low=found.low, high=found.high
    )


def judge(difference: float, low: float, high: float, tolerance: float) -> Verdict:
    """The difference decides; the interval (NaN: not known) says how firmly."""
    # 0.02 of 100 and 102 − 100 are not the same number to a computer
    limit = tolerance * (1 + 1e-9)
    if abs(difference) <= limit:
        return Verdict.WITHIN_OPEN if low < -limit or high > limit else Verdict.WITHIN
    reaches = low <= limit and high >= -limit
    return Verdict.BEYOND_OPEN if reaches else Verdict.BEYOND
