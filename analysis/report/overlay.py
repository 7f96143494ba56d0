"""The data from which the page lays any two trials over each other.

They are settings with their trials, the metrics of every flow, and each trial's series, in files
beside the page or within it. The series come from the digest and the samples; no capture is read.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from analysis.figures.cases import text
from analysis.figures.timeline.timeline_data import sampled_queue
from analysis.metrics.digest import DELAY_BY_SECOND, THROUGHPUT_SERIES
from analysis.metrics.metric_rows import AXIS, INVALID, joined_by_trial
from analysis.report.listing import METRIC_HEADS, METRIC_UNITS
from analysis.report.page_plot import Json, packed, script_json
from analysis.results.experiment_results import ExperimentResults
from analysis.results.workers import shared_out
from analysis.statistics.intervals import student_quantile
from analysis.statistics.tolerances import TOLERANCES
from analysis.trials.samples import by_flow, read_columns
from analysis.trials.series import Floats
from testbed.errors import TestbedError
from testbed.machine.atomic import one_journal, replace
from testbed.machine.safe_files import make_folder
from testbed.store import QUEUE_SAMPLES, SOCKET_SAMPLES, FlowRecord, QueueRecord, Status, Trial

MOST_POINTS = 800  # points of a series: about one per pixel
Places = npt.NDArray[np.intp]
History = tuple[str, Floats, Floats, float]  # what, times, values, the least difference of values
INTERPOLATION_STEPS = 512  # of 1 / degrees of freedom, between which the page interpolates
SHOWN_OF_SOCKETS = ("time_s", "flow", "state", "cwnd", "srtt_ms")
SHOWN_OF_QUEUES = ("time_s", "interface", "backlog_bytes", "backlog_packets")
EXTREMES = (np.minimum, np.maximum)
OTHER_HEADS = {
    "rtt_p95_ms": "RTT, 95th percentile",
    "timeouts": "timeouts",
    "jain": "Jain's index",
}


@dataclass(frozen=True)
class Overlay:
    """The choice and the metrics as JSON, and the series that are within the page, by trial."""

    choice: str = field(repr=False)
    series: Mapping[int, str] = field(repr=False)


def overlay(all_results: Sequence[ExperimentResults], folder: Path | None) -> Overlay | None:
    """Return what the page's own plot shows; None if fewer than two flows ran.

    `folder` takes the series, a file for each trial; without one they are within the page.
    """
    settings: list[Json] = []
    values: dict[str, Json] = {}
    for results in all_results:
        settings += settings_of(results)
        values |= _values(results)
    if sum(map(len, values.values())) < 2:
        return None
    choice = {
        "folder": folder.name if folder else "",
        "metrics": [
            {"head": METRIC_HEADS.get(name) or OTHER_HEADS[name], "unit": METRIC_UNITS[name]}
            for name in TOLERANCES
        ],
        "settings": settings,
        "values": values,
        "quantiles": _quantiles(),
    }
    if folder:
        make_folder(folder)
    within = dict[int, str]()
    for results in all_results:
        for packed_trials, not_shown in shared_out(
            results.experiment, functools.partial(_packed_trials, folder), _ran(results)
        ):
            within |= packed_trials
            results.not_shown.extend(not_shown)
    return Overlay(script_json(choice), within)


def _ran(results: ExperimentResults) -> list[tuple[int, Trial, pa.Table]]:
    """Return the trials that ran, with their numbers in the page and their series."""
    numbers = dict(zip(results.rows["trial"], results.rows["number"].map(int), strict=True))
    ran = (trial for trial in results.trials if trial.record.status is Status.OK)
    return [(numbers[t.path.name], t, results.series[t.path.name]) for t in ran]


def _packed_trials(
    folder: Path | None, trials: Sequence[tuple[int, Trial, pa.Table]]
) -> tuple[dict[int, str], list[str]]:
    """Write the packed series of trials, or without a folder return them; and what they lack."""
    within, not_shown = dict[int, str](), list[str]()
    with one_journal():
        for number, trial, series in trials:
            try:
                sampled = read_sampled(trial)
            except TestbedError as error:
                sampled = None, None
                not_shown.append(f"{trial.path.name}: without its samples: {error.message}")
            content = trial_text(trial, series, *sampled)
            if folder:
                _write(folder / f"t{number}.js", f'testbedSeries({number},"{content}");\n')
            else:
                within[number] = content
    return within, not_shown


def _write(path: Path, script: str) -> None:
    replace(path, lambda own: own.write_text(script, encoding="utf-8"))


def read_sampled(trial: Trial) -> tuple[pa.Table | None, pa.Table | None]:
    """Read what the page shows of the samples of sockets and of queues."""
    sockets = read_columns(trial, SOCKET_SAMPLES, SHOWN_OF_SOCKETS)
    return sockets, read_columns(trial, QUEUE_SAMPLES, SHOWN_OF_QUEUES)


def settings_of(results: ExperimentResults) -> list[Json]:
    """Return the settings to choose from, each with its flows and a trial for each seed."""
    rows = results.rows[results.rows["status"] == "ok"]
    # a flow's setting leaves its own variant out
    repeats = joined_by_trial(rows["trial"], rows["setting"] + " " + rows["variant"])
    axes = results.varied(rows)
    groups = rows.groupby(repeats, sort=False)
    return [_setting(group, axes, results.key) for _, group in groups]


def _setting(rows: pd.DataFrame, axes: Sequence[str], part: str) -> Json:
    first = rows.iloc[0]
    known = [(name, first[AXIS + name]) for name in axes if pd.notna(first[AXIS + name])]
    words = ", ".join(f"{name.replace('_', ' ')} {text(value)}" for name, value in known)
    trials = rows.drop_duplicates("trial")[["number", "seed", "verdict"]].to_numpy().tolist()
    return {
        "part": part,
        "name": words or str(first["label"]) or str(first["experiment"]),
        "flows": list(dict.fromkeys(map(str, rows["flow"]))),
        "trials": [[int(n), int(seed), int(verdict == INVALID)] for n, seed, verdict in trials],
    }


def _values(results: ExperimentResults) -> dict[str, Json]:
    """Return the metrics that `testbed compare` compares, by the trial's number and the flow."""
    found: dict[str, Json] = {}
    rows = results.rows[results.rows["status"] == "ok"]
    table = rows[["number", "flow", *TOLERANCES]].to_numpy().tolist()
    for number, flow, *numbers in table:
        found.setdefault(str(int(number)), {})[str(flow)] = [_known(each) for each in numbers]
    return found


def _known(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _quantiles() -> list[float]:
    """Student's, from endless degrees of freedom to one, in equal steps of their inverse."""
    freedoms = [1e9, *(INTERPOLATION_STEPS / np.arange(1, INTERPOLATION_STEPS + 1))]
    return [float(f"{student_quantile(float(each)):.6g}") for each in freedoms]


@dataclass(frozen=True)
class _ReadOnce:
    """What is read of a trial for all its flows together."""

    trial: Trial
    digest: Mapping[tuple[str, str], tuple[Floats, Floats]]  # by flow and what: x, value
    has_seconds: bool  # of all flows
    sockets: Mapping[str, pa.Table]  # by flow: samples of its open connections
    queues: Mapping[str, History]  # by interface


def trial_text(
    trial: Trial, series: pa.Table, sockets: pa.Table | None, queues: pa.Table | None
) -> str:
    """Pack a trial's series by flow: compressed JSON in base64, which is safe in a page."""
    digest = _series_by_flow(series)
    with_seconds = {flow for flow, what in digest if what == DELAY_BY_SECOND}
    has_seconds = with_seconds >= {flow.name for flow in trial.record.flows}
    records = trial.record.queues if queues is not None else ()
    of_queues = {record.interface: _queue(queues, record) for record in records}
    once = _ReadOnce(trial, digest, has_seconds, _open_by_flow(sockets), of_queues)
    found = {flow.name: _flow(once, flow) for flow in trial.record.flows}
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _series_by_flow(series: pa.Table) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """Return the known values of each of a digest's series; pandas would take ten times as long."""
    flows, whats = (series[name].combine_chunks() for name in ("flow", "what"))
    codes = flows.indices.to_numpy() * len(whats.dictionary) + whats.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    x, value = (series[name].to_numpy()[order] for name in ("x", "value"))
    known = np.isfinite(x) & np.isfinite(value)
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    found = {}
    for first, last in itertools.pairwise([*firsts, len(order)]):
        own = slice(first, last)
        key = flows[int(order[first])].as_py(), whats[int(order[first])].as_py()
        found[key] = x[own][known[own]], value[own][known[own]]
    return found


def _open_by_flow(sockets: pa.Table | None) -> dict[str, pa.Table]:
    if sockets is None:
        return {}
    return by_flow(sockets.filter(compute.equal(sockets["state"], "established")))


def _flow(once: _ReadOnce, flow: FlowRecord) -> Json:
    parts = (*_digested(once, flow), *_of_sockets(once, flow), *_of_queue(once, flow))
    return {
        what: {"x": packed(x, 1e-3), "y": packed(y, unit)} for what, x, y, unit in parts if len(x)
    }


def _digested(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    nothing = np.zeros(0), np.zeros(0)
    yield ("throughput", *once.digest.get((flow.name, THROUGHPUT_SERIES), nothing), 1e-4)
    if once.has_seconds:
        second, delay_ms = once.digest.get((flow.name, DELAY_BY_SECOND), nothing)
        yield "delay", second + 0.5, delay_ms, 1e-2


def _of_sockets(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    """Yield the sum of the windows of a flow's connections, and the mean of their RTTs."""
    own = once.sockets.get(flow.name)
    if own is None:
        return
    times = own["time_s"].to_numpy()
    begins = np.flatnonzero(np.diff(times, prepend=-np.inf))  # of samples of the same time
    window, rtts = (_summed(own[name].to_numpy(), begins) for name in ("cwnd", "srtt_ms"))
    counted = np.maximum(_summed(np.isfinite(own["srtt_ms"].to_numpy()), begins), 1)
    for what, values, unit in (("window", window, 1), ("rtt", rtts / counted, 1e-2)):
        known = values > 0
        yield (what, *thinned(times[begins][known], values[known]), unit)


def _summed(values: npt.NDArray[Any], begins: Places) -> Floats:
    """Return the sums of the known values of each stretch."""
    known = np.nan_to_num(values.astype(np.float64))
    return np.add.reduceat(known, begins) if len(known) else known


def _of_queue(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    record = sampled_queue(once.trial, flow)
    if once.queues and record is not None:
        yield once.queues[record.interface]


def _queue(queues: pa.Table, record: QueueRecord) -> History:
    """Return how full a queue is over time."""
    own = queues.filter(compute.equal(queues["interface"], record.interface))
    packets = record.unit == "packets"
    value = own["backlog_packets"].to_numpy() if packets else own["backlog_bytes"].to_numpy() / 1e3
    x, y = thinned(own["time_s"].to_numpy(), value)
    return "packets" if packets else "kilobytes", x, y, 1e-2


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Where values change; of too many points, the least and the greatest of each stretch."""
    if len(x) > 2:
        kept = np.append(True, y[1:] != y[:-1])
        kept[-1] = True
        x, y = x[kept], y[kept]
    if len(x) <= most:
        return x, y
    edges = np.linspace(x[0], x[-1], most // 2 + 1)[1:-1]
    stretch = np.searchsorted(edges, x, side="right")
    is_begin = np.diff(stretch, prepend=-1) != 0
    begins, number = np.flatnonzero(is_begin), np.cumsum(is_begin) - 1
    ends = [_firsts(y == extreme.reduceat(y, begins)[number], number) for extreme in EXTREMES]
    places = np.unique(np.concatenate([*ends, [len(x) - 1]]))
    return x[places], y[places]


def _firsts(chosen: npt.NDArray[np.bool_], number: Places) -> Places:
    """Return the first chosen place of each stretch; `number` is the stretch of each place."""
    places = np.flatnonzero(chosen)
    firsts: Places = places[np.diff(number[places], prepend=-1) != 0]
    return firsts
