"""The results of a report: the trials of results folders with their metrics and digests."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis.metrics.digest import OVER_TIME_PREFIXES
from analysis.metrics.metric_rows import AXIS, counted, tell_settings_apart, varied_axes, with_axes
from analysis.results.reduction import Reduction, reductions_of
from analysis.results.tables import joined, metrics_of
from analysis.results.workers import shared_out
from analysis.verdict.checks import Grade
from testbed.errors import TestbedError
from testbed.scenario.experiment import Experiment
from testbed.store.reading import Trial, no_trials, readable, trial_paths

MAX_LEFT_OUT = 10  # trials that are named
DIGEST_COLUMNS = ("flow", "what", "x", "value", "trial")


@dataclass(frozen=True, eq=False)  # equal by identity, so that functions of it can be cached
class ExperimentResults:
    """One experiment on one engine.

    `rows` has a row a flow of every trial, `good` those whose numbers count: of trials that
    ran and are not invalid. Both have the trial's `number` in the report, the verdict, and the
    axes as columns `axis_…`. `digest` has the good trials' series and quantiles, their names as
    categories; `plotted` has what a page plots of each trial that ran, by its number, and `grades`
    each trial's worst grade of each check. Whoever shows a trial without something that cannot be
    read says so in `not_shown`.
    """

    experiment: str
    engine: str
    trials: tuple[Trial, ...]
    rows: pd.DataFrame
    good: pd.DataFrame
    digest: pd.DataFrame
    folder: str = ""  # where another one has other trials of these names
    definition: Experiment | None = None  # None: known from its trials alone
    plotted: Mapping[int, str] = field(default_factory=dict, repr=False)
    grades: Sequence[Mapping[str, Grade]] = field(default=(), repr=False)
    not_shown: list[str] = field(default_factory=list, repr=False)

    @property
    def tcp(self) -> pd.DataFrame:
        """The TCP flows among the good rows."""
        return self.good[self.good["kind"] == "tcp"]

    @property
    def key(self) -> str:
        """The experiment's name in the page's anchors and the figures' file names."""
        parts = (self.experiment, self.engine or "none", re.sub(r"[^\w.]+", "-", self.folder))
        return "-".join(filter(None, parts))

    def axes(self) -> list[str]:
        """Return the experiment's axes that have a value anywhere."""
        return [
            name.removeprefix(AXIS)
            for name in self.rows.columns
            if name.startswith(AXIS) and self.rows[name].notna().any()
        ]

    def varied(self, rows: pd.DataFrame | None = None) -> list[str]:
        """Return the axes with more than one value."""
        return varied_axes(self.good if rows is None else rows)


@dataclass(frozen=True)
class ResultSet:
    """The results that were found, and what to distrust."""

    experiments: tuple[ExperimentResults, ...]
    warnings: tuple[str, ...]
    again: tuple[str, ...]  # trials that lay in more than one folder: counted once
    apart: tuple[str, ...] = ()  # trials of one name that are not the same, each in its folder

    @property
    def metrics(self) -> pd.DataFrame:
        """The rows of all experiments."""
        return pd.concat([each.rows for each in self.experiments], ignore_index=True)

    @property
    def not_shown(self) -> Iterator[str]:
        """Sentences on what figures and plots lack, and why."""
        for results in self.experiments:
            yield from results.not_shown

    @property
    def grades(self) -> Iterator[Mapping[str, Grade]]:
        """The worst grade of each check, trial by trial."""
        for results in self.experiments:
            yield from results.grades

    @property
    def trials(self) -> Iterator[Trial]:
        """The trials in the order of their numbers."""
        for results in self.experiments:
            yield from results.trials


def collect(
    folders: Sequence[Path], definitions: Mapping[str, Experiment] | None = None
) -> ResultSet:
    """Read results folders; trials that were not reduced yet are reduced now.

    `definitions` are the experiments that the trials may be of, by name: they say how results are
    shown.
    """
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps what it has freed
    paths = [path for folder in folders for path in trial_paths(folder)]
    parts = [*shared_out("the trials", _read, paths)]
    left_out = [error for part in parts for error in part.left_out]
    kept, again = _without_copies(_with_places(parts))
    tables = [(part.flows, part.series) for part in parts if part.flows is not None]
    del parts  # and later the tables: what they hold is held once
    if not kept:
        raise left_out[0] if left_out else no_trials(folders[0])
    names = Counter(each.trial.path.name for each in kept)
    apart = tuple(name for name, count in names.items() if count > 1)
    flows, series = (
        metrics_of([table for table, _ in tables]),
        _together([table for _, table in tables]),
    )
    del tables
    all_results, first = list[ExperimentResults](), 1
    warnings = [f"left out: {error.message}" for error in left_out[:MAX_LEFT_OUT]]
    if left_out[MAX_LEFT_OUT:]:
        warnings.append(f"left out: {len(left_out) - MAX_LEFT_OUT} more trials that cannot be read")
    for key, members in _grouped(kept, apart).items():
        results = _results_of(*key, members, flows, series, first)
        definition = (definitions or {}).get(results.experiment)
        if definition and definition.has_made(results.axes()):
            results = replace(results, definition=definition)
        all_results.append(results)
        warnings += [line for each in members for line in each.warnings]
        first += len(members)
    del flows, series
    pa.default_memory_pool().release_unused()
    return ResultSet(tuple(all_results), tuple(warnings), tuple(again), apart)


def _without_copies(every: Iterable[_ReadTrial]) -> tuple[list[_ReadTrial], list[str]]:
    """Return the trials without copies, by name, and the names of the copies."""
    by_trial: dict[str, list[_ReadTrial]] = {}
    again = list[str]()
    for each in every:
        twins = by_trial.setdefault(each.trial.path.name, [])
        if any(_same(each.trial, twin.trial) for twin in twins):
            again.append(each.trial.path.name)
        else:
            twins.append(each)
    return [each for twins in by_trial.values() for each in twins], again


def _grouped(
    trials: Sequence[_ReadTrial], apart: Collection[str]
) -> dict[tuple[str, str, str], list[_ReadTrial]]:
    """Group trials by experiment and engine; by folder, too, where some have the same names."""
    unlike = {each.trial.scenario.experiment for each in trials if each.trial.path.name in apart}
    groups: dict[tuple[str, str, str], list[_ReadTrial]] = {}
    for each in trials:
        experiment = each.trial.scenario.experiment
        folder = str(each.trial.path.parent) if experiment in unlike else ""
        groups.setdefault((experiment, each.trial.record.engine, folder), []).append(each)
    return groups


def _same(one: Trial, other: Trial) -> bool:
    """Say whether one trial is a copy of the other, or has the same packets."""
    hashes = [{each.file: each.sha256 for each in t.record.captures} for t in (one, other)]
    packets = bool(hashes[0]) and all(hashes[0].values()) and hashes[0] == hashes[1]
    return packets or one.record == other.record


def _results_of(
    experiment: str,
    engine: str,
    folder: str,
    members: Sequence[_ReadTrial],
    flows: pd.DataFrame,
    series: pa.Table,
    first: int,
) -> ExperimentResults:
    trials = tuple(each.trial for each in members)
    numbers = {trial.path.name: first + place for place, trial in enumerate(trials)}
    flow_rows = flows.iloc[_places(each.rows for each in members)]
    rows = with_axes(flow_rows.reset_index(drop=True))
    rows["number"] = rows["trial"].map(numbers)
    rows = tell_settings_apart(_with_verdict_columns(rows))
    good = counted(rows)
    named = set(good["trial"])
    digest = _digest(
        {n: e.steps for n, e in zip(numbers, members, strict=True) if n in named}, series
    )
    packed = {n: e.plotted for n, e in zip(numbers.values(), members, strict=True) if e.plotted}
    grades = [each.grades for each in members]
    return ExperimentResults(
        experiment, engine, trials, rows, good, digest, folder, plotted=packed, grades=grades
    )


@dataclass(frozen=True)
class _ReadTrial:
    """What a page needs of a trial's reduction: thousands of whole ones fill memory.

    The trial counts as failed if it cannot be reduced. `rows` are its flows' places among those
    of all trials, `steps` those of its series.
    """

    trial: Trial
    plotted: str
    warnings: tuple[str, ...]
    grades: Mapping[str, Grade]
    rows: range
    steps: range


@dataclass(frozen=True)
class _Part:
    """A few trials with their flows and series, if there are any, and what is wrong with others."""

    found: list[_ReadTrial]
    flows: pa.Table | None
    series: pa.Table
    left_out: list[TestbedError]


def _read(paths: Sequence[Path], at_once: int) -> _Part:
    trials, left_out = readable(paths)
    trials = [*_sharing_settings(trials)]
    reductions = [*reductions_of(trials, at_once, plots=True)]
    if not reductions:
        return _Part([], None, pa.table({}), left_out)
    series = [_without_plots(each.tables["series"]) for each in reductions]
    read_trials = [
        _read_trial(each, len(steps)) for each, steps in zip(reductions, series, strict=True)
    ]
    flows = joined([each.tables["flows"] for each in reductions])
    return _Part(read_trials, flows, _together(series).combine_chunks(), left_out)


def _sharing_settings(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield the trials; those of a setting that follow each other have it in memory once."""
    setting = None
    for trial in trials:
        scenario = replace(trial.scenario, seed=0)
        setting = scenario if scenario != setting else setting
        yield replace(trial, scenario=replace(setting, seed=trial.scenario.seed))


def _read_trial(reduction: Reduction, steps: int) -> _ReadTrial:
    verdict = None
    with contextlib.suppress(TestbedError, OSError):  # one that is lost is made of the captures
        verdict = reduction.verdict
    grades = _same_grades(tuple(verdict.by_check().items())) if verdict else {}
    places = range(len(reduction.tables["flows"])), range(steps)
    return _ReadTrial(reduction.trial, reduction.plotted, reduction.warnings, grades, *places)


@functools.lru_cache(maxsize=1024)
def _same_grades(grades: tuple[tuple[str, Grade], ...]) -> Mapping[str, Grade]:
    """Return one mapping for equal grades: most trials have all that they can have."""
    return dict(grades)


def _with_places(parts: Sequence[_Part]) -> Iterator[_ReadTrial]:
    """Yield all trials, with the places of what is theirs in the tables of all parts together."""
    rows = steps = 0
    for each in itertools.chain.from_iterable(part.found for part in parts):
        spans = range(rows, rows + len(each.rows)), range(steps, steps + len(each.steps))
        rows, steps = spans[0].stop, spans[1].stop
        yield replace(each, rows=spans[0], steps=spans[1])


def _places(ranges: Iterable[range]) -> npt.NDArray[np.int64]:
    every = [np.arange(each.start, each.stop) for each in ranges]
    return np.concatenate([np.zeros(0, np.int64), *every])


def _together(series: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(series).unify_dictionaries()


def _without_plots(series: pa.Table) -> pa.Table:
    """Drop the series that only plots over time read; each name is tested, not each row."""
    what = series["what"].combine_chunks()
    names = what.dictionary.to_pylist()
    mask = np.array([not name.startswith(OVER_TIME_PREFIXES) for name in names], dtype=bool)
    return series.filter(pa.array(mask[what.indices.to_numpy()]))


def _digest(steps: Mapping[str, range], series: pa.Table) -> pd.DataFrame:
    """Return some trials' series and quantiles, by the trials' names.

    Names are categories, a byte or two each: thousands of trials have a million rows.
    """
    if not steps:
        return pd.DataFrame({name: [] for name in DIGEST_COLUMNS})
    places = np.repeat(np.arange(len(steps), dtype=np.int32), [*map(len, steps.values())])
    trials = pa.DictionaryArray.from_arrays(places, pa.array(steps, pa.large_string()))
    chosen = pa.concat_tables(
        series.slice(each.start, len(each)) for each in _merged_ranges(steps.values())
    )
    digest: pd.DataFrame = chosen.append_column("trial", trials).to_pandas()
    return digest


def _merged_ranges(ranges: Iterable[range]) -> list[range]:
    """Join ranges that follow each other."""
    runs = list[range]()
    for each in ranges:
        if runs and runs[-1].stop == each.start:
            runs[-1] = range(runs[-1].start, each.stop)
        else:
            runs.append(each)
    return runs


def _with_verdict_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Fill `verdict` and `why` with empty text where a trial was not judged."""
    for name in ("verdict", "why"):
        texts = rows[name].fillna("").astype("str") if name in rows else ""
        rows[name] = texts
    return rows
