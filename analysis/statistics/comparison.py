"""The comparison of two results folders, cell by cell: two kernels, two engines, or two commits.

A cell is a flow of a setting. Trials match by their scenario without the seed (and without what
only observes: captures and samples), and by the engine only where both folders hold the same
several ones. Where at least two seeds are shared, cells are compared seed by seed, else by Welch's
test.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.metrics.metric_rows import invalid
from analysis.results.reduction import reductions_of
from analysis.statistics.intervals import compare, compare_paired, known
from analysis.statistics.packet_comparison import same_captures, setting_json
from analysis.statistics.tolerances import COMPARABLE, DEFAULT_TOLERANCE, Tolerance
from analysis.trials.labels import variant_key
from testbed.errors import TestbedError
from testbed.store.reading import Trial, no_trials, trials_in
from testbed.store.records import Status

SettingKey = tuple[str, str]  # scenario as JSON, engine where that is part of the match
TrialsBySeed = Mapping[int, Trial]
Side = dict[SettingKey, dict[int, Trial]]
FlowValues = dict[Path, dict[str, dict[str, float]]]  # trial → flow → metric → value


class Agreement(enum.StrEnum):
    """The agreement of A and B in one metric of a cell.

    A question mark says that the interval crosses the tolerance, so other seeds might decide
    otherwise; the observed difference decides.
    """

    IDENTICAL = "identical"  # the captures are, byte for byte, and so are the numbers
    EQUAL = "equal"  # the numbers are
    WITHIN = "within"
    WITHIN_OPEN = "within?"
    BEYOND = "beyond"
    BEYOND_OPEN = "beyond?"
    ONE_SIDED = "known in one"

    @property
    def agrees(self) -> bool:
        """True unless A and B differ beyond the tolerance, or only one has the metric."""
        return self not in (Agreement.BEYOND, Agreement.BEYOND_OPEN, Agreement.ONE_SIDED)


@dataclass(frozen=True)
class ComparedMetric:
    """A metric of a cell; a cell whose captures are identical has one, without numbers."""

    setting: str
    flow: str
    trials: str  # how many on either side, and whether paired
    agreement: Agreement
    metric: str = ""
    a: float = math.nan
    b: float = math.nan
    difference: float = math.nan  # b less a
    low: float = math.nan
    high: float = math.nan
    tolerance: Tolerance = DEFAULT_TOLERANCE


@dataclass(frozen=True)
class FolderComparison:
    """The compared metrics of all cells, and what could not be compared."""

    metrics: tuple[ComparedMetric, ...]
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
        agree = all(metric.agreement.agrees for metric in self.metrics)
        return bool(self.metrics) and agree and not self.other_status


def in_common(first: Path, second: Path) -> bool:
    """Return whether a scenario, whatever its seed, is in both folders."""
    a, b = ({setting_json(trial) for trial in trials_in(path)} for path in (first, second))
    return not a.isdisjoint(b)


def compare_results(
    first: Path, second: Path, tolerances: Mapping[str, Tolerance]
) -> FolderComparison:
    """Compare the trials of A and B that match, and name those that do not."""
    a, b = match_trials(first, second)
    common = [key for key in a if key in b]
    if not common:
        raise TestbedError(
            f"{first} and {second}: no scenario in common",
            "trials match if their scenarios agree in all but the seed and what is captured",
        )
    pairs = [(a[key][s], b[key][s]) for key in common for s in sorted(a[key].keys() & b[key])]
    ran = [pair for pair in pairs if all(trial.record.status is Status.OK for trial in pair)]
    same = frozenset(left.path for left, right in ran if same_captures(left, right))
    tables = _metrics_of(
        trial for side in (a, b) for key in common for trial in _successful(side[key])
    )
    refused = {path for path, table in tables.items() if invalid(table).any()}
    values = {path: _values_of_flows(table) for path, table in tables.items()}
    metrics: list[ComparedMetric] = []
    for key, label in labels({key: next(iter(a[key].values())) for key in common}).items():
        left, right = (
            {seed: trial for seed, trial in side[key].items() if trial.path not in refused}
            for side in (a, b)
        )
        cells = _Cells(label, left, right, same, values)
        metrics += _compare_setting(cells, tolerances)
    return FolderComparison(
        tuple(metrics),
        only_a=tuple(_unmatched(a, b)),
        only_b=tuple(_unmatched(b, a)),
        other_status=tuple(
            f"{left.path.name}: {left.record.status} in A, {right.record.status} in B"
            for left, right in pairs
            if left.record.status is not right.record.status
        ),
        not_run=tuple(
            f"{left.path.name}: {left.record.status} in both"
            for left, right in pairs
            if left.record.status is right.record.status is not Status.OK
        ),
        invalid=tuple(
            f"{path.name}: {tables[path]['why'].iloc[0]}" for path in tables if path in refused
        ),
        identical=len(same),
        matched=len(ran),
        kernels=(_kernels(left for left, _ in ran), _kernels(right for _, right in ran)),
    )


# Matching


def match_trials(first: Path, second: Path) -> tuple[Side, Side]:
    """Group the trials of both folders by setting and seed."""
    folders = [list(trials_in(first)), list(trials_in(second))]
    for path, trials in zip((first, second), folders, strict=True):
        if not trials:
            raise no_trials(path)
    engines = [{trial.record.engine for trial in trials} for trials in folders]
    several = max(map(len, engines)) > 1  # only then the engine has to tell trials apart
    if several and engines[0] != engines[1]:
        path, names = max(zip((first, second), engines, strict=True), key=lambda one: len(one[1]))
        raise TestbedError(
            f"{path}: holds trials of several engines: {', '.join(sorted(names))}",
            "compare folders of one engine each: `testbed run … --out DIR`",
        )
    return _load_side(first, folders[0], several), _load_side(second, folders[1], several)


def _load_side(folder: Path, trials: Iterable[Trial], by_engine: bool) -> Side:
    side: Side = {}
    for trial in trials:
        key = (setting_json(trial), trial.record.engine if by_engine else "")
        twin = side.setdefault(key, {}).setdefault(trial.scenario.seed, trial)
        if twin is not trial:
            raise TestbedError(
                f"{folder}: {twin.path.name} and {trial.path.name} are of the same scenario",
                "move one of them away",
            )
    return side


def _unmatched(side: Side, other: Side) -> Iterator[str]:
    """Yield the names of trials that the other side lacks."""
    for key, seeds in side.items():
        yield from (seeds[s].path.name for s in sorted(seeds) if s not in other.get(key, {}))


def labels(trials: Mapping[SettingKey, Trial]) -> dict[SettingKey, str]:
    """Return the settings' labels in their usual order, extended where a label is ambiguous."""
    several = len({trial.scenario.experiment for trial in trials.values()}) > 1
    alike: dict[str, list[SettingKey]] = {}
    for key, trial in trials.items():
        scenario = trial.scenario
        label = scenario.label or scenario.experiment
        if several and scenario.label:
            label = f"{scenario.experiment} {label}"
        alike.setdefault(f"{label} {key[1]}".rstrip(), []).append(key)
    extended: dict[SettingKey, str] = {}
    for label, keys in alike.items():
        fields = {key: dict(_fields(json.loads(key[0]))) for key in keys}
        names = list(dict.fromkeys(name for flat in fields.values() for name in flat))
        varying = [n for n in names if len({flat.get(n) for flat in fields.values()}) > 1]
        for key in keys:
            assignments = [
                f"{n.split('.')[-1]}={fields[key][n]}" for n in varying if n in fields[key]
            ]
            extended[key] = " ".join(dict.fromkeys([label, *assignments]))

    def order(key: SettingKey) -> tuple[object, ...]:
        return variant_key(trials[key].scenario.flows[0].variant or ""), extended[key]

    return {key: extended[key] for key in sorted(extended, key=order)}


def _fields(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield a scenario's fields by path: `topology.bottleneck.rate_mbit`, `1`."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in items:
            yield from _fields(member, f"{name}.{key}".lstrip("."))
    else:
        yield name, str(value)


def _kernels(trials: Iterable[Trial]) -> str:
    """Name the engines and kernels of trials: `guest (Linux 6.1.0-testbed)`."""
    pairs = {(t.record.engine, " ".join(t.record.kernel.split()[:2])) for t in trials}
    return ", ".join(
        f"{engine} ({kernel})" if kernel else engine for engine, kernel in sorted(pairs)
    )


# Comparing


def _successful(seeds: TrialsBySeed) -> list[Trial]:
    return [trial for trial in seeds.values() if trial.record.status is Status.OK]


def _metrics_of(trials: Iterable[Trial]) -> dict[Path, pd.DataFrame]:
    """Return each trial's metrics; several trials are reduced side by side."""
    every = list(trials)
    return {each.trial.path: each.flows for each in reductions_of(every)}


def _values_of_flows(metrics: pd.DataFrame) -> dict[str, dict[str, float]]:
    rows = metrics.set_index("flow")[list(COMPARABLE)].to_dict("index")
    return {
        str(flow): {str(name): float(v) for name, v in row.items()} for flow, row in rows.items()
    }


@dataclass(frozen=True)
class _Cells:
    """The trials of one setting on both sides."""

    label: str
    a: TrialsBySeed
    b: TrialsBySeed
    same: frozenset[Path]  # trials of A whose captures are those of B's
    values: FlowValues

    @property
    def paired_seeds(self) -> tuple[int, ...]:
        """The seeds of a paired comparison: those that A and B share, if several or all."""
        first, second = (
            {trial.scenario.seed for trial in _successful(x)} for x in (self.a, self.b)
        )
        shared = first & second
        return tuple(sorted(shared)) if len(shared) > 1 or first == second else ()

    @property
    def compared_trials(self) -> tuple[list[Trial], list[Trial]]:
        """The trials that are compared."""
        if self.paired_seeds:
            return [self.a[seed] for seed in self.paired_seeds], [
                self.b[seed] for seed in self.paired_seeds
            ]
        return _successful(self.a), _successful(self.b)

    @property
    def count(self) -> str:
        """The number of compared trials: one if by seed, else one for each side."""
        if self.paired_seeds:
            return str(len(self.paired_seeds))
        return " + ".join(str(len(side)) for side in self.compared_trials)

    @property
    def identical(self) -> bool:
        """True if all captures are identical."""
        return bool(self.paired_seeds) and all(
            trial.path in self.same for trial in self.compared_trials[0]
        )

    def by_seed(self, trials: Iterable[Trial], flow: str, metric: str) -> dict[int, float]:
        """Return a metric's values by seed."""
        return {t.scenario.seed: self.values[t.path][flow][metric] for t in trials}


def _compare_setting(
    cells: _Cells, tolerances: Mapping[str, Tolerance]
) -> Iterator[ComparedMetric]:
    """Yield each flow's metrics; for identical captures, only metrics that still differ."""
    if not all(cells.compared_trials):
        return
    if cells.identical:
        yield ComparedMetric(cells.label, "", cells.count, Agreement.IDENTICAL, "all captures")
    for flow in next(iter(cells.a.values())).scenario.flows:
        for name, tolerance in tolerances.items():
            compared = _compare_metric(cells, flow.name, name, tolerance)
            if compared and not (cells.identical and compared.agreement is Agreement.EQUAL):
                yield compared


def _compare_metric(
    cells: _Cells, flow: str, metric: str, tolerance: Tolerance
) -> ComparedMetric | None:
    """Compare one metric of a flow; None if it is known on neither side."""
    first, second = (cells.by_seed(side, flow, metric) for side in cells.compared_trials)
    a, b = known(first.values()), known(second.values())
    if not len(a) and not len(b):
        return None
    mean_a, mean_b = (float(values.mean()) if len(values) else math.nan for values in (a, b))
    one_sided = ComparedMetric(
        *(cells.label, flow, cells.count, Agreement.ONE_SIDED, metric, mean_a, mean_b),
        tolerance=tolerance,
    )
    # a metric that is known of other seeds here than there is not the same cell's
    if cells.paired_seeds and [*map(math.isnan, first.values())] != [
        *map(math.isnan, second.values())
    ]:
        return one_sided
    if not len(a) or not len(b):
        return one_sided
    result = compare_paired(second, first) if cells.paired_seeds else compare(b, a)
    equal = np.array_equal(a, b) if cells.paired_seeds else len({*a, *b}) == 1
    agreement = judge(result.difference, result.low, result.high, tolerance.of(mean_a))
    return dataclasses.replace(
        one_sided,
        agreement=Agreement.EQUAL if equal else agreement,
        difference=result.difference,
        low=result.low,
        high=result.high,
    )


def judge(difference: float, low: float, high: float, tolerance: float) -> Agreement:
    """Judge a difference; its interval (NaN: not known) says how firmly."""
    # 0.02 of 100 and 102 − 100 are not the same number to a computer
    limit = tolerance * (1 + 1e-9)
    if abs(difference) <= limit:
        return Agreement.WITHIN_OPEN if low < -limit or high > limit else Agreement.WITHIN
    reaches = low <= limit and high >= -limit
    return Agreement.BEYOND_OPEN if reaches else Agreement.BEYOND
