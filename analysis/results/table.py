"""A trial becomes one row per flow; a results folder becomes metrics.csv and metrics.parquet."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.captures.atomic_write import replace
from analysis.metrics.columns import COLUMNS, COUNTS, METRICS, NUMBERS, TEXTS, measured_row
from analysis.metrics.fairness import add_fairness
from analysis.metrics.identification import identity_row
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.metric import Row
from analysis.trials.packets import TrialPackets
from analysis.trials.samples import Samples
from analysis.verdict import verdict as fidelity
from testbed.errors import TestbedError
from testbed.store import Status, Trial, trials_in

CACHE = "metrics.parquet"  # in the trial's directory
REVISION = 1  # raise it when a change here gives other numbers under the same definitions


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
        add_fairness(frame)
    frame.attrs["warnings"] = [f"{trial.path.name}: {text}" for text in packets.warnings]
    return frame


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows with all columns in their order; what a row does not know is NaN."""
    return _frame_of(pd.DataFrame(rows, columns=list(COLUMNS)))


def _frame_of(frame: pd.DataFrame) -> pd.DataFrame:
    kinds: dict[str, str] = dict.fromkeys(TEXTS, "str") | dict.fromkeys(NUMBERS, "float64")
    return frame.astype(kinds)


def _revision() -> str:
    """Changes with the definitions and the tolerances: rows of others are not mixed in."""
    return hashlib.sha256(f"{REVISION} {METRICS} {fidelity.revision()}".encode()).hexdigest()[:12]


def cached_metrics(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """The trial's rows: those that it keeps, if they are of this revision, or new ones."""
    cache = trial.path / CACHE
    if cache.is_file():
        # a damaged cache is only a slow one
        with contextlib.suppress(OSError, ValueError):
            kept = pd.read_parquet(cache)
            if kept.attrs.get("revision") == _revision():
                return _renamed(kept, trial.path.name)
            if any(not capture.file for capture in trial.record.captures):
                return _as_reduced_before(kept, trial.path.name)
    frame = trial_metrics(trial, packets)
    frame.attrs["revision"] = _revision()
    with contextlib.suppress(TestbedError):  # someone else's results: do without
        replace(cache, frame.to_parquet)
    return frame


def _as_reduced_before(kept: pd.DataFrame, trial: str) -> pd.DataFrame:
    """Rows of other definitions, where the captures are gone that new ones could come from."""
    frame = _renamed(kept.reindex(columns=list(COLUMNS)), trial)
    frame.attrs["warnings"] = [
        f"{trial}: its captures were dropped, so its numbers are those of an earlier version"
    ]
    return frame


def _renamed(frame: pd.DataFrame, trial: str) -> pd.DataFrame:
    """The rows of a trial whose directory may have got another name since."""
    attrs = frame.attrs
    frame = frame.astype(dict.fromkeys(TEXTS, "str"))
    frame["trial"] = trial
    frame.attrs = attrs
    return frame


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
    cache = trial.path / CACHE
    with contextlib.suppress(OSError, ValueError), pa.memory_map(str(cache)) as file:
        table = pq.ParquetFile(file).read(use_threads=False)
        attrs = json.loads((table.schema.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        if attrs.get("revision") == _revision():
            place = table.schema.get_field_index("trial")
            names = pa.array([trial.path.name] * len(table))
            return table.set_column(place, "trial", names), attrs["warnings"]
    frame = cached_metrics(trial)
    return pa.Table.from_pandas(frame, preserve_index=False), frame.attrs["warnings"]


def write_metrics(results: Path) -> pd.DataFrame:
    """Reduce all trials of a results folder and write metrics.csv and metrics.parquet there.

    `attrs["warnings"]` of the table are the warnings of all trials.
    """
    table = all_metrics(list(trials_in(results)))
    warnings = table.attrs.pop("warnings")
    replace(results / "metrics.csv", lambda path: _write_csv(table, path))
    replace(results / "metrics.parquet", table.to_parquet)
    table.attrs["warnings"] = warnings
    return table


def _write_csv(table: pd.DataFrame, path: Path) -> None:
    """Counts without a decimal point, other numbers with nine digits."""
    counts = {name: table[name].astype("Int64") for name in COUNTS}
    table.assign(**counts).replace({np.nan: None}).to_csv(path, index=False, float_format="%.9g")
