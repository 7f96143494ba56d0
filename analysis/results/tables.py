"""The tables of a run: metrics.csv and metrics.parquet, links.csv, transfers.csv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.metrics.columns import COUNT_COLUMNS
from analysis.metrics.metric_rows import write_axes
from analysis.results.reduction import Reduction, reductions_of, typed_flows
from analysis.results.workers import shared_out
from analysis.transfers.transfer_rows import workloads
from testbed.machine.atomic import replace
from testbed.store.names import LINKS_CSV, METRICS_CSV, METRICS_FILE, TRANSFERS_CSV
from testbed.store.reading import Trial, readable, trial_paths
from testbed.store.records import Status
from testbed.store.writing import spreadsheet_frame


def all_metrics(trials: Sequence[Trial]) -> pd.DataFrame:
    """Return the flows of all trials, in their order.

    `attrs["warnings"]` says what to distrust.
    """
    flows, warnings = list[pa.Table](), list[str]()
    for some in shared_out("the trials", _flows_of, trials):
        flows.append(some[0])
        warnings += some[1]
    table = metrics_of(flows)
    table.attrs = {"warnings": warnings}
    return table


def _flows_of(trials: Sequence[Trial], at_once: int) -> tuple[pa.Table, list[str]]:
    """Return the flows of a few trials, and their warnings."""
    flows, warnings = list[pa.Table](), list[str]()
    for reduction in reductions_of(trials, at_once):
        flows.append(reduction.tables["flows"])
        warnings += reduction.warnings
    return joined(flows), warnings


def metrics_of(flows: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the flows of several reductions, in their order."""
    return typed_flows(joined(flows).to_pandas() if flows else pd.DataFrame())


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return several trials' rows in one table, whose columns are those of any of them."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def write_metrics(folder: Path) -> pd.DataFrame:
    """Write metrics.csv and metrics.parquet of a run or a results folder, and return the table.

    `attrs["warnings"]` of the table says what to distrust.
    """
    trials, left_out = readable(trial_paths(folder))
    table = all_metrics(trials)
    warnings = [*(f"left out: {each}" for each in left_out), *table.attrs.pop("warnings")]
    counts = {name: table[name].astype("Int64") for name in COUNT_COLUMNS}
    known = table.assign(**counts).replace({np.nan: None})
    replace(folder / METRICS_CSV, lambda path: _write_csv(known, path))
    replace(folder / METRICS_FILE, table.to_parquet)
    table.attrs["warnings"] = warnings
    return table


def write_links(run: Path, trials: Iterable[Trial]) -> pd.DataFrame:
    """Write links.csv of a run whose trials observed several links, and return its rows."""
    frame = _together((each, each.links) for each in _of_trials_that_ran(trials))
    if len(frame):
        replace(run / LINKS_CSV, lambda path: _write_csv(frame, path))
    return frame


def write_transfers(run: Path, trials: Iterable[Trial]) -> pd.DataFrame:
    """Write transfers.csv of a run whose trials have workloads, and return its rows."""
    frame = transfers_of(trials)
    if len(frame):
        replace(run / TRANSFERS_CSV, lambda path: _write_csv(frame, path, ("retransmissions",)))
    return frame


def transfers_of(trials: Iterable[Trial]) -> pd.DataFrame:
    """Return the transfers of all trials that ran, with what tells the trials apart."""
    with_workloads = (trial for trial in trials if workloads(trial))
    return _together((each, each.transfers) for each in _of_trials_that_ran(with_workloads))


def _of_trials_that_ran(trials: Iterable[Trial]) -> Iterator[Reduction]:
    return reductions_of([trial for trial in trials if trial.record.status is Status.OK])


def _together(parts: Iterable[tuple[Reduction, pd.DataFrame]]) -> pd.DataFrame:
    """Concatenate rows of several trials behind columns that tell the trials apart."""
    tables = [_with_trial(reduction, rows) for reduction, rows in parts if len(rows)]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _with_trial(reduction: Reduction, rows: pd.DataFrame) -> pd.DataFrame:
    trial, scenario = reduction.trial, reduction.trial.scenario
    keys: dict[str, str | int] = {
        "trial": trial.path.name,
        "verdict": reduction.flows["verdict"].iloc[0],
        "label": scenario.label,
        "axes": write_axes(scenario.axes),
        "seed": scenario.seed,
    }
    return pd.concat([pd.DataFrame(keys, index=rows.index), rows], axis=1)


def _write_csv(table: pd.DataFrame, path: Path, counts: Sequence[str] = ()) -> None:
    """Write counts without a decimal point, other numbers with nine digits."""
    whole = {name: table[name].astype("Int64") for name in counts}
    spreadsheet_frame(table.assign(**whole)).to_csv(path, index=False, float_format="%.9g")
