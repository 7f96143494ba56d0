"""A trial becomes one row per flow; a results folder becomes metrics.csv and metrics.parquet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.metrics.columns import COLUMNS, COUNTS, NUMBERS, TEXTS, measured_row
from analysis.metrics.fairness import add_fairness
from analysis.metrics.identification import identity_row
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import Row
from analysis.trials.kept_table import Kept, keep, read_kept
from analysis.trials.packets import TrialPackets
from analysis.trials.samples import Samples
from analysis.verdict import verdict as fidelity
from testbed.machine.atomic import replace
from testbed.store import METRICS_CSV, METRICS_FILE, Status, Trial, trials_in

REVISION = 3  # raise it when the same columns get other numbers


def trial_metrics(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """One row per flow of the scenario; `attrs["warnings"]` says what to distrust.

    `packets` are its captures, if they are read for something else too.
    """
    packets = packets or TrialPackets(trial)
    samples = Samples(trial)
    records = {
        record.name: MeasuredFlow(trial, record, packets, samples) for record in trial.record.flows
    }
    ran = trial.record.status is Status.OK
    verdict = fidelity.cached_verdict(trial, packets)
    judged = {"verdict": str(verdict.verdict), "why": verdict.why} if verdict else {}
    rows = [
        identity_row(trial, flow)
        | judged
        | (measured_row(records[flow.name]) if ran and flow.name in records else {})
        for flow in trial.scenario.flows
    ]
    frame = _frame(rows)
    if ran:
        add_fairness(frame, records)
    frame.attrs["warnings"] = [f"{trial.path.name}: {text}" for text in packets.warnings]
    return frame


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows with all columns in their order; what a row does not know is NaN."""
    return _frame_of(pd.DataFrame(rows, columns=list(COLUMNS)))


def _frame_of(frame: pd.DataFrame, warnings: Sequence[str] = ()) -> pd.DataFrame:
    # not by a type for each column: pandas would put seventy frames of one column together
    parts = frame[list(TEXTS)].astype("str"), frame[list(NUMBERS)].astype("float64")
    typed = pd.concat(parts, axis=1)[list(COLUMNS)]
    typed.attrs["warnings"] = list(warnings)
    return typed


def revision() -> str:
    """A hash of the columns, the tolerances and REVISION: rows of others are not mixed in.

    Values only: a definition may be worded anew.
    """
    columns = [(name, name in TEXTS, name in COUNTS) for name in COLUMNS]
    return hashlib.sha256(f"{REVISION} {columns} {fidelity.revision()}".encode()).hexdigest()[:12]


def cached_metrics(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """The rows that the trial keeps, if they are of this revision, or new ones.

    Where captures are gone that new ones could come from, older ones stay, with a warning.
    """
    path = trial.path / METRICS_FILE
    kept = read_kept(path)
    if kept and kept.revision == revision():
        return _frame_of(_named(kept.table, trial).to_pandas(), kept.warnings)
    if kept and any(not capture.file for capture in trial.record.captures):
        return _as_reduced_before(kept, trial)
    frame = trial_metrics(trial, packets)
    keep(path, frame, revision())
    return frame


def _as_reduced_before(kept: Kept, trial: Trial) -> pd.DataFrame:
    """Rows of other definitions."""
    told = f"{trial.path.name}: its captures were dropped, so its numbers are of an earlier version"
    rows = _named(kept.table, trial).to_pandas()
    return _frame_of(rows.reindex(columns=list(COLUMNS)), [told])


def _named(table: pa.Table, trial: Trial) -> pa.Table:
    """The rows of a trial whose directory may have been renamed since."""
    names = pa.array([trial.path.name] * len(table))
    return table.set_column(table.schema.get_field_index("trial"), "trial", names)


def all_metrics(trials: Sequence[Trial]) -> pd.DataFrame:
    """The rows of all of them, in their order; `attrs["warnings"]` are those of all trials."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside of Python's lock
        parts = list(pool.map(_as_arrow, trials))
    table = _frame([])
    if parts:
        whole = pa.concat_tables((part for part, _ in parts), promote_options="permissive")
        table = _frame_of(whole.select(list(COLUMNS)).to_pandas())
    table.attrs = {"warnings": [text for _, warnings in parts for text in warnings]}
    return table


def _as_arrow(trial: Trial) -> tuple[pa.Table, list[str]]:
    """A trial's rows and warnings. A kept table does not become pandas' for that: of a thousand
    trials, that would take longer than all else."""
    kept = read_kept(trial.path / METRICS_FILE)
    if kept and kept.revision == revision():
        return _named(kept.table, trial), kept.warnings
    frame = cached_metrics(trial)
    return pa.Table.from_pandas(frame, preserve_index=False), frame.attrs["warnings"]


def write_metrics(results: Path) -> pd.DataFrame:
    """Reduce all trials of a results folder and write metrics.csv and metrics.parquet there.

    `attrs["warnings"]` of the table are the warnings of all trials.
    """
    table = all_metrics(list(trials_in(results)))
    warnings = table.attrs.pop("warnings")
    replace(results / METRICS_CSV, lambda path: _write_csv(table, path))
    replace(results / METRICS_FILE, table.to_parquet)
    table.attrs["warnings"] = warnings
    return table


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    """Counts without a decimal point, other numbers with nine digits."""
    counts = {name: table[name].astype("Int64") for name in COUNTS}
    table.assign(**counts).replace({np.nan: None}).to_csv(path, index=False, float_format="%.9g")
