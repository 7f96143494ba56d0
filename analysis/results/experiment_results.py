"""The results of a report: the trials of results folders with their metrics and digests."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.metrics.digest import DELAY_BY_SECOND, SECOND_PREFIX
from analysis.metrics.metric_rows import AXIS, counted, tell_settings_apart, varied_axes, with_axes
from analysis.results.reduction import reductions_of
from analysis.results.tables import all_metrics, joined, metrics_of
from analysis.results.workers import shared_out
from testbed.errors import TestbedError
from testbed.scenario.experiment import Experiment
from testbed.scenario.variations import is_varied
from testbed.store import Trial, open_trial, trial_paths

MOST_LEFT_OUT = 10  # trials that are named
DIGEST_COLUMNS = ("flow", "what", "x", "value", "trial")


@dataclass(frozen=True, eq=False)  # equal by identity, so that functions of it can be cached
class ExperimentResults:
    """One experiment on one engine.

    `rows` has a row a flow of every trial, `good` those whose numbers count: of trials that
    ran and are not invalid. Both have the trial's `number` in the report, the verdict, and the
    axes as columns `axis_…`. `digest` has the good trials' series and quantiles, their names as
    categories; `series` has those of every trial by its name, with what the page shows of those
    by second. Whoever shows a trial without something that cannot be read says so in `not_shown`.
    """

    experiment: str
    engine: str
    trials: tuple[Trial, ...]
    rows: pd.DataFrame
    good: pd.DataFrame
    digest: pd.DataFrame
    folder: str = ""  # where another one has other trials of these names
    definition: Experiment | None = None  # None: known from its trials alone
    series: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)
    not_shown: list[str] = field(default_factory=list, repr=False)

    @property
    def tcp(self) -> pd.DataFrame:
        """The TCP flows among the good rows."""
        return self.good[self.good["kind"] == "tcp"]

    @property
    def key(self) -> str:
        """Its name in the page's anchors and the figures' file names."""
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
    """All that was found, and what to distrust."""

    experiments: tuple[ExperimentResults, ...]
    warnings: tuple[str, ...]
    again: tuple[str, ...]  # trials that lay in more than one folder: counted once
    apart: tuple[str, ...] = ()  # trials of one name that are not the same, each in its folder
    varied: tuple[Trial, ...] = ()  # of --sensitivity: they are for the claims alone

    @property
    def metrics(self) -> pd.DataFrame:
        """All rows of all experiments."""
        own = [each.rows for each in self.experiments]
        others = [all_metrics(self.varied)] if self.varied else []
        return pd.concat([*own, *others], ignore_index=True)

    @property
    def not_shown(self) -> Iterator[str]:
        """What figures and plots lack, and why."""
        for results in self.experiments:
            yield from results.not_shown

    @property
    def trials(self) -> Iterator[Trial]:
        """All trials, in the order of their numbers."""
        for results in self.experiments:
            yield from results.trials


def collect(
    folders: Sequence[Path], definitions: Mapping[str, Experiment] | None = None
) -> ResultSet:
    """Read results folders; trials that were not reduced yet are reduced now.

    `definitions` are the experiments that the trials may be of, by name: they say how results are
    shown.
    """
    found, again, left_out = _once(folders)
    varied = tuple(trial for trial in found if is_varied(trial.scenario))
    trials = [trial for trial in found if not is_varied(trial.scenario)] or list(varied)
    if not trials:
        named = ", ".join(map(str, folders))
        if left_out:
            raise left_out[0]
        raise TestbedError(f"{named}: no trials in it", "name a folder that `testbed run` made")
    names = Counter(trial.path.name for trial in trials)
    apart = tuple(name for name, count in names.items() if count > 1)
    unlike = {t.scenario.experiment for t in trials if t.path.name in apart}
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        experiment = trial.scenario.experiment
        folder = str(trial.path.parent) if experiment in unlike else ""
        groups.setdefault((experiment, trial.record.engine, folder), []).append(trial)
    all_results, first = [], 1
    warnings = [f"left out: {error.message}" for error in left_out[:MOST_LEFT_OUT]]
    if left_out[MOST_LEFT_OUT:]:
        warnings.append(
            f"left out: {len(left_out) - MOST_LEFT_OUT} more trials that cannot be read"
        )
    for key, members in groups.items():
        results, said = _results_of(*key, members, first)
        definition = (definitions or {}).get(results.experiment)
        if definition and definition.has_made(results.axes()):
            results = replace(results, definition=definition)
        all_results.append(results)
        warnings += said
        first += len(members)
    beside = varied if len(trials) < len(found) else ()
    return ResultSet(tuple(all_results), tuple(warnings), tuple(again), apart, beside)


def _once(folders: Sequence[Path]) -> tuple[list[Trial], list[str], list[TestbedError]]:
    """Return the trials without copies, the names of the copies, and what is wrong with others."""
    found: dict[str, list[Trial]] = {}
    again, left_out = list[str](), list[TestbedError]()
    for folder in folders:
        for path in trial_paths(folder):
            try:
                trial = open_trial(path)
            except TestbedError as error:
                left_out.append(error)
                continue
            twins = found.setdefault(trial.path.name, [])
            if any(_same(trial, twin) for twin in twins):
                again.append(trial.path.name)
            else:
                twins.append(trial)
    return [trial for twins in found.values() for trial in twins], again, left_out


def _same(one: Trial, other: Trial) -> bool:
    """Say whether one trial is a copy of the other, or has the same packets."""
    hashes = [{each.file: each.sha256 for each in t.record.captures} for t in (one, other)]
    packets = bool(hashes[0]) and all(hashes[0].values()) and hashes[0] == hashes[1]
    return packets or one.record == other.record


def _results_of(
    experiment: str, engine: str, folder: str, trials: Sequence[Trial], first: int
) -> tuple[ExperimentResults, list[str]]:
    parts = [*shared_out(experiment, _read, trials)]
    failed = {trial.path.name: trial for part in parts for trial in part.failed}
    reduced = tuple(failed.get(trial.path.name, trial) for trial in trials)
    every = itertools.chain.from_iterable(part.series for part in parts)
    series = dict(zip((trial.path.name for trial in trials), every, strict=True))
    warnings = [line for part in parts for line in part.warnings]
    numbers = {trial.path.name: first + place for place, trial in enumerate(trials)}
    rows = with_axes(metrics_of([part.flows for part in parts]))
    rows["number"] = rows["trial"].map(numbers)
    rows = tell_settings_apart(_judged(rows))
    good = counted(rows)
    named = set(good["trial"])
    digest = _digest({name: table for name, table in series.items() if name in named})
    own = ExperimentResults(experiment, engine, reduced, rows, good, digest, folder, series=series)
    return own, warnings


@dataclass(frozen=True)
class _Part:
    """What a page needs of the reductions of a few trials: thousands of whole ones fill memory."""

    flows: pa.Table
    series: list[pa.Table]
    warnings: list[str]
    failed: list[Trial]  # that cannot be reduced


def _read(trials: Sequence[Trial]) -> _Part:
    reductions = [*reductions_of(trials, ("flows", "series"))]
    return _Part(
        joined([each.tables["flows"] for each in reductions]),
        [_encoded(each.tables["series"]) for each in reductions],
        [line for each in reductions for line in each.warnings],
        [each.trial for each, t in zip(reductions, trials, strict=True) if each.trial is not t],
    )


def _encoded(series: pa.Table) -> pa.Table:
    """Return what is shown of a reduction's series in little memory: names as places."""
    texts = (series[name].cast(pa.large_string()) for name in ("flow", "what"))
    numbers = (series[name].cast(pa.float64()) for name in ("x", "value"))
    columns = [*(each.fill_null("").dictionary_encode() for each in texts), *numbers]
    table = pa.table(columns, ["flow", "what", "x", "value"])
    return _only(table, lambda what: what == DELAY_BY_SECOND or not what.startswith(SECOND_PREFIX))


def _only(series: pa.Table, shown: Callable[[str], bool]) -> pa.Table:
    """Return the series with some names: each name is looked at once, not each row."""
    what = series["what"].combine_chunks()
    mask = np.array([shown(name) for name in what.dictionary.to_pylist()], dtype=bool)
    return series.filter(pa.array(mask[what.indices.to_numpy()]))


def _digest(series: Mapping[str, pa.Table]) -> pd.DataFrame:
    """Return the trials' series and quantiles in one table, without the series by second.

    Names are categories, a byte or two each: thousands of trials have a million rows.
    """
    if not series:
        return pd.DataFrame({name: [] for name in DIGEST_COLUMNS})
    places = np.repeat(np.arange(len(series), dtype=np.int32), [*map(len, series.values())])
    trials = pa.DictionaryArray.from_arrays(places, pa.array(series, pa.large_string()))
    every = pa.concat_tables(series.values()).unify_dictionaries().append_column("trial", trials)
    digest: pd.DataFrame = _only(every, lambda what: what != DELAY_BY_SECOND).to_pandas()
    return digest


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    """With a verdict and its reasons in every row, empty where no one judged."""
    for name in ("verdict", "why"):
        texts = rows[name].fillna("").astype("str") if name in rows else ""
        rows[name] = texts
    return rows
