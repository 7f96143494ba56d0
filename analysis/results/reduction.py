"""A trial's reduction: what its captures, samples and reports come to.

A trial is reduced once. Its captures are read, it is judged, and its tables of flows, links,
transfers and series are computed; all of it is stored in the trial's directory, and everything
else reads it from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.metrics import digest, links
from analysis.metrics.columns import (
    COUNT_COLUMNS,
    METRIC_COLUMNS,
    TEXT_COLUMNS,
    flow_table,
    measured_columns,
    number_columns,
)
from analysis.metrics.datagrams import DATAGRAM_COLUMNS
from analysis.metrics.digest import OVER_TIME_PREFIXES, seconds_table
from analysis.metrics.metric import MeasuredFlow
from analysis.metrics.program_output import numbers_of
from analysis.results import page_series, stored_tables
from analysis.results.stored_tables import StoredReduction, as_arrow, decoded, encoded
from analysis.transfers import transfer_rows
from analysis.trials.damage import damage
from analysis.trials.packets import TrialPackets
from analysis.trials.samples import Samples
from analysis.verdict.rules import CHECK_RULES
from analysis.verdict.verdict import Verdict, judge
from testbed.errors import TestbedError
from testbed.machine import json_files
from testbed.machine.atomic import replace
from testbed.store.names import REDUCED, VERDICT_FILE
from testbed.store.reading import Trial
from testbed.store.records import DAMAGED, Status

REVISION = 2  # raise it when a change gives other numbers, or other verdicts under the same limits
CORRECTION = 5  # raise it instead where that moves no table of a page but those made again with it
# Columns that came without a change of any other: tables of pages that were made before stay valid.
ADDED_COLUMNS = frozenset({"completion_s", *(metric.name for metric in DATAGRAM_COLUMNS)})
ADDED_CHECKS = frozenset({"files", "few packets"})  # likewise: no trial that was valid fails them
STORED_COLUMNS = {  # those that none can do without
    "flows": {"flow"},
    "links": {each.name for each in links.LINK_COLUMNS},
    "transfers": {each.name for each in transfer_rows.TRANSFER_COLUMNS},
    "series": {"flow", "what", "x", "value"},
}
NEVER_UNKNOWN = {"flow", "what"}
MAX_AT_ONCE = 16  # reductions that are read ahead


@dataclass(frozen=True)
class Reduction:
    """A trial's tables and verdict, as stored or as just computed.

    `tables` has Arrow's tables by the names in TABLES: concatenating those of a thousand trials
    is much faster than concatenating pandas' frames. `plotted` are its series as a page has them,
    where one is made. `judged` is the verdict of a reduction that was just computed. One that
    `is_damaged`, for the trial's files are, has no numbers, and is not stored.
    """

    trial: Trial
    tables: Mapping[str, pa.Table]
    warnings: tuple[str, ...] = ()
    plotted: str = ""
    judged: Verdict | None = None
    is_damaged: bool = False

    @cached_property
    def flows(self) -> pd.DataFrame:
        """A row for each flow of the scenario, with the columns of metrics.csv."""
        return typed_flows(self.tables["flows"].to_pandas())

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row for each observed direction of a link; none where only one is observed."""
        return decoded(self.tables["links"])

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """A row for each transfer that the trial's workloads planned."""
        return decoded(self.tables["transfers"])

    @cached_property
    def series(self) -> pd.DataFrame:
        """The flows' series and quantiles for figures: columns `flow`, `what`, `x`, `value`."""
        table = decoded(self.tables["series"])
        return table[~table["what"].str.startswith(OVER_TIME_PREFIXES)].reset_index(drop=True)

    @cached_property
    def seconds(self) -> pd.DataFrame:
        """A row for each flow and second: rate at the receiver, mean delays and their number."""
        return seconds_table(self.trial, decoded(self.tables["series"]))

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the trial; None if it did not run, or the verdict is lost."""
        return self.judged or stored_verdict(self.trial) or judge_again(self.trial)


def typed_flows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of metrics.csv in their order, with NaN for unknown numbers."""
    # not by a type for each column: pandas would put seventy frames of one column together
    names = [*METRIC_COLUMNS, *measured_columns(frame.columns)]
    frame = frame.reindex(columns=names)
    numbers = number_columns(frame)
    parts = frame[list(TEXT_COLUMNS)].astype("str"), frame[numbers].astype("float64")
    return pd.concat(parts, axis=1)[names]


def revision() -> str:
    """Return a hash of everything that decides the numbers and verdicts of a given trial.

    It contains names, units and limits but no prose: rewording a definition reduces nothing again.
    """
    return f"{_revision(METRIC_COLUMNS, CHECK_RULES)}-{CORRECTION}"


def revision_of_tables() -> str:
    """Return a hash of what decides the tables of pages, none of which has an added column."""
    names = tuple(name for name in METRIC_COLUMNS if name not in ADDED_COLUMNS)
    return _revision(names, [name for name in CHECK_RULES if name not in ADDED_CHECKS])


def _revision(names: Sequence[str], checks: Iterable[str]) -> str:
    columns = [(name, name in TEXT_COLUMNS, name in COUNT_COLUMNS) for name in names]
    others = [each.name for each in (*links.LINK_COLUMNS, *transfer_rows.TRANSFER_COLUMNS)]
    limits = [CHECK_RULES[name].decides for name in checks]
    return hashlib.sha256(f"{REVISION} {columns} {others} {limits}".encode()).hexdigest()[:12]


def reduce_trial(trial: Trial, *, is_fresh: bool = False) -> Reduction:
    """Read a trial's captures once, judge it, and compute its tables; store nothing.

    A trial with a file that is damaged, or cannot be read, is invalid, and has no numbers.
    `is_fresh`: it has just run.
    """
    if trial.record.status is not Status.OK:
        return _reduced(trial, None)
    faults = [*damage(trial, is_fresh=is_fresh)]
    if not faults:
        packets, samples = TrialPackets(trial, checked=True), Samples(trial)
        try:
            return _reduced(trial, judge(trial, packets, samples, ()), packets, samples)
        except (TestbedError, OSError) as error:
            faults = [str(error)]
    verdict = judge(trial, faults=faults)
    warnings = (f"{trial.path.name}: {verdict.why}",) if verdict else ()
    return dataclasses.replace(_reduced(trial, verdict), is_damaged=True, warnings=warnings)


def _reduced(
    trial: Trial,
    verdict: Verdict | None,
    packets: TrialPackets | None = None,
    samples: Samples | None = None,
) -> Reduction:
    """Return the tables of a trial, without numbers where its packets are not to be read."""
    measured = list[MeasuredFlow]()
    if packets and samples:
        measured = [MeasuredFlow(trial, record, packets, samples) for record in trial.record.flows]
    flows = flow_table(trial, measured)
    printed, missing = numbers_of(trial) if measured else ({}, [])
    for flow, numbers in printed.items():
        flows.loc[flows["flow"] == flow, [*numbers]] = [*numbers.values()]
    if verdict:
        flows[["verdict", "why"]] = str(verdict.verdict), verdict.why
    series = digest.series_table(measured)
    of_links = links.link_table(trial, packets)
    transfers = transfer_rows.transfer_table(trial, packets)
    all_warnings = [*packets.warnings, *missing] if packets else ()
    warnings = tuple(f"{trial.path.name}: {text}" for text in all_warnings)
    tables = {
        "flows": _flows_as_arrow(flows),
        "links": as_arrow(of_links),
        "transfers": as_arrow(transfers),
        "series": encoded(as_arrow(series)),
    }
    return Reduction(trial, tables, warnings, judged=verdict)


def _flows_as_arrow(frame: pd.DataFrame) -> pa.Table:
    """Build the flows' Arrow table directly: pandas is slow for a hundred columns."""
    names = [*METRIC_COLUMNS, *measured_columns(frame.columns)]
    columns = frame.reindex(columns=names).to_numpy(dtype=object).T
    arrays = [
        pa.array(
            [None if pd.isna(value) else str(value) for value in column],
            pa.large_string(),
        )
        if name in TEXT_COLUMNS
        else pa.array(column.astype(np.float64), from_pandas=True)
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names)


def reduction_of(trial: Trial, *, is_fresh: bool = False) -> Reduction:
    """Return a trial's stored reduction, or reduce it and store the result.

    A reduction of another revision stays, with a warning, where captures were dropped from which
    a new one could be made.
    """
    return _stored(trial, revision()) or _computed(trial, is_fresh=is_fresh)


def _stored(trial: Trial, present: str, *, plots: bool = False) -> Reduction | None:
    """Return a trial's stored reduction, unless it must be computed: its revision is another."""
    stored = stored_tables.read(trial.path)
    if stored is None or not _is_of(stored.tables, trial):
        return None
    tables = {**stored.tables, "flows": _named(stored.tables["flows"], trial)}
    reduction = Reduction(trial, tables, stored.warnings)
    if stored.revision != present:
        if not _has_dropped_captures(trial):
            return None
        warning = "its captures were dropped, so its numbers are of an earlier version"
        reduction = Reduction(trial, tables, (f"{trial.path.name}: {warning}",))
    if not plots:
        return reduction
    if stored.plotted_by == page_series.PACKER_VERSION and page_series.matches_trial(
        stored.plotted, trial
    ):
        return dataclasses.replace(reduction, plotted=stored.plotted)
    reduction = _with_plot(reduction)
    if stored.revision == present:
        store(reduction)
    return reduction


def _with_plot(reduction: Reduction) -> Reduction:
    """Return it with its series for a page; if its samples are lost without them, and a warning."""
    trial, series = reduction.trial, reduction.tables["series"]
    if trial.record.status is not Status.OK:
        return reduction
    try:
        sampled = page_series.read_sampled(trial)
    except TestbedError as error:
        note = f"{trial.path.name}: without its samples: {error.message}"
        warnings = (*reduction.warnings, note)
        text = page_series.trial_text(trial, series)
        return dataclasses.replace(reduction, plotted=text, warnings=warnings)
    return dataclasses.replace(reduction, plotted=page_series.trial_text(trial, series, *sampled))


def _has_dropped_captures(trial: Trial) -> bool:
    return any(not capture.file for capture in trial.record.captures)


def _computed(trial: Trial, *, is_fresh: bool = False) -> Reduction:
    """Reduce a trial, and store the result."""
    reduced = reduce_trial(trial, is_fresh=is_fresh)
    if reduced.is_damaged:
        return reduced
    computed = _with_plot(reduced)
    store(computed)
    return computed


def reductions_of(
    trials: Sequence[Trial], at_once: int | None = None, *, plots: bool = False
) -> Iterator[Reduction]:
    """Yield the reductions of several trials, in their order, with their `plots` if asked for.

    Only a few are in memory at a time, unless the caller holds them; `at_once` of those that are
    not stored are computed together, else as many as there are processors.
    """
    present = revision()  # once: it takes as long as a tenth of a trial's reduction
    with ThreadPoolExecutor(at_once or os.cpu_count()) as pool:
        for first in range(0, len(trials), MAX_AT_ONCE):
            batch = trials[first : first + MAX_AT_ONCE]
            # not in threads, which would wait for Python's lock
            stored = [_stored(trial, present, plots=plots) for trial in batch]
            computed = pool.map(
                _computed, [t for t, known in zip(batch, stored, strict=True) if not known]
            )
            yield from (known or next(computed) for known in stored)


def store(reduction: Reduction, of_revision: str | None = None) -> None:
    """Write a reduction into the trial's directory; do without where that cannot be written."""
    stored = StoredReduction(
        of_revision or revision(),
        reduction.warnings,
        reduction.tables,
        reduction.plotted,
        page_series.PACKER_VERSION,
    )
    with contextlib.suppress(TestbedError):  # another user's results
        if reduction.judged is not None:
            text = reduction.judged.to_json()
            replace(reduction.trial.path / VERDICT_FILE, lambda path: path.write_text(text))
        replace(reduction.trial.path / REDUCED, lambda path: stored_tables.write(path, stored))


def _is_of(tables: Mapping[str, pa.Table], trial: Trial) -> bool:
    """Say whether stored tables can be this trial's: the flows are, and no column is missing."""
    flows = [flow.name for flow in trial.scenario.flows]
    return all(
        STORED_COLUMNS[name] <= set(table.column_names)
        and not any(table[each].null_count for each in NEVER_UNKNOWN & STORED_COLUMNS[name])
        for name, table in tables.items()
        if len(table) or name == "flows"
    ) and (
        tables["flows"]["flow"].to_pylist() == flows
        and {*measured_columns(tables["flows"].column_names)} == _measured(trial)
    )


def _measured(trial: Trial) -> set[str]:
    """Return the columns of numbers that the trial's programs print, if it ran."""
    commands = [flow.command for flow in trial.scenario.flows if flow.command]
    has_run = trial.record.status is Status.OK
    return {each.column for command in commands for each in command.measure if has_run}


def _named(flows: pa.Table, trial: Trial) -> pa.Table:
    """Return stored rows with the name of the trial's directory, which may be another since."""
    names = pa.array([trial.path.name] * len(flows), pa.large_string())
    return flows.set_column(flows.schema.get_field_index("trial"), "trial", names)


def stored_verdict(trial: Trial) -> Verdict | None:
    """Return the verdict in the trial's directory, of any revision; None if it is missing."""
    with contextlib.suppress(OSError, *DAMAGED):
        return Verdict.from_json(json_files.read_record(trial.path / VERDICT_FILE))
    return None


def judge_again(trial: Trial) -> Verdict | None:
    """Replace a verdict that is missing or damaged; None if the trial has no packets for that."""
    if trial.record.status is not Status.OK or _has_dropped_captures(trial):
        return None
    computed = _computed(trial)
    return None if computed.is_damaged else computed.judged


def verdict_of(trial: Trial) -> Verdict | None:
    """Return the verdict on a trial, reducing it if needed; None if it did not run, or is lost."""
    return reduction_of(trial).verdict
