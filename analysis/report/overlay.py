"""The data from which the page lays any two trials over each other.

They are settings with their trials, the metrics of every flow, and each trial's series, in files
beside the page or within it. The series come from the digest and the samples; no capture is read.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.figures.cases import text
from analysis.figures.timeline.timeline_data import queue_samples, socket_samples
from analysis.metrics.digest import SECOND_PREFIX, THROUGHPUT_SERIES
from analysis.metrics.metric_rows import AXIS, INVALID
from analysis.report.listing import METRIC_HEADS, METRIC_UNITS
from analysis.report.page_plot import Json, packed, script_json
from analysis.results.experiment_results import ExperimentResults
from analysis.results.reduction import reduction_of
from analysis.statistics.intervals import student_quantile
from analysis.statistics.tolerances import TOLERANCES
from analysis.trials.samples import Samples
from analysis.trials.series import Floats
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder
from testbed.store import FlowRecord, Status, Trial

MOST_POINTS = 800  # points of a series: about one per pixel
History = tuple[str, Floats, Floats, float]  # what, times, values, the least difference of values
INTERPOLATION_STEPS = 512  # of 1 / degrees of freedom, between which the page interpolates
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


def overlay(all_results: Iterable[ExperimentResults], folder: Path | None) -> Overlay | None:
    """`folder` takes the series, a file for each trial; without one they are within the page.

    None if fewer than two flows ran.
    """
    settings: list[Json] = []
    values: dict[str, Json] = {}
    series: dict[int, str] = {}
    for results in all_results:
        settings += settings_of(results)
        values |= _values(results)
        for number, trial in _ran(results):
            series[number] = trial_text(trial)
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
    if folder is None:
        return Overlay(script_json(choice), series)
    make_folder(folder)
    for number, content in series.items():
        _write(folder / f"t{number}.js", f'testbedSeries({number},"{content}");\n')
    return Overlay(script_json(choice), {})


def _write(path: Path, script: str) -> None:
    replace(path, lambda own: own.write_text(script, encoding="utf-8"))


def _ran(results: ExperimentResults) -> Iterator[tuple[int, Trial]]:
    numbers = dict(zip(results.rows["trial"], results.rows["number"], strict=True))
    for trial in results.trials:
        if trial.record.status is Status.OK:
            yield int(numbers[trial.path.name]), trial


def settings_of(results: ExperimentResults) -> list[Json]:
    """Return the settings to choose from, each with its flows and a trial for each seed."""
    rows = results.rows[results.rows["status"] == "ok"]
    # a flow's setting leaves its own variant out
    repeats = (rows["setting"] + " " + rows["variant"]).groupby(rows["trial"], sort=False)
    axes = results.varied(rows)
    groups = rows.groupby(repeats.transform("+".join), sort=False)
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
    samples: Samples


def trial_text(trial: Trial) -> str:
    """Pack the trial's series by flow: compressed JSON in base64, which is safe in a page."""
    reduction = reduction_of(trial)
    digest = _series_by_flow(reduction.tables["series"])
    with_seconds = {flow for flow, what in digest if what.startswith(SECOND_PREFIX)}
    has_seconds = with_seconds >= {flow.name for flow in trial.record.flows}
    once = _ReadOnce(trial, digest, has_seconds, Samples(trial))
    found = {flow.name: _flow(once, flow) for flow in trial.record.flows}
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _series_by_flow(series: pa.Table) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """Return the known values of each of a digest's series; pandas would take ten times as long."""
    flows, whats = (
        series[name].combine_chunks().cast(pa.large_string()).fill_null("").dictionary_encode()
        for name in ("flow", "what")
    )
    codes = flows.indices.to_numpy() * len(whats.dictionary) + whats.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    x, value = (series[name].to_numpy().astype(np.float64)[order] for name in ("x", "value"))
    known = np.isfinite(x) & np.isfinite(value)
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    found = {}
    for first, last in itertools.pairwise([*firsts, len(order)]):
        own = slice(first, last)
        key = flows[int(order[first])].as_py(), whats[int(order[first])].as_py()
        found[key] = x[own][known[own]], value[own][known[own]]
    return found


def _flow(once: _ReadOnce, flow: FlowRecord) -> Json:
    parts = (*_digested(once, flow), *_sampled(once, flow))
    return {
        what: {"x": packed(x, 1e-3), "y": packed(y, unit)} for what, x, y, unit in parts if len(x)
    }


def _digested(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    nothing = np.zeros(0), np.zeros(0)
    yield ("throughput", *once.digest.get((flow.name, THROUGHPUT_SERIES), nothing), 1e-4)
    if once.has_seconds:
        second, delay_ms = once.digest.get((flow.name, f"{SECOND_PREFIX}owd_ms"), nothing)
        yield "delay", second + 0.5, delay_ms, 1e-2


def _sampled(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    sockets = socket_samples(once.samples, flow)
    if sockets is not None:
        for what, column, unit in (("window", "cwnd", 1), ("rtt", "srtt_ms", 1e-2)):
            own = sockets[sockets[column] > 0]
            yield (what, *thinned(own["time_s"].to_numpy(), own[column].to_numpy()), unit)
    queue, record = queue_samples(once.trial, once.samples, flow)
    if queue is not None:
        packets = record is None or record.unit == "packets"
        value = queue["packets"] if packets else queue["bytes"] / 1e3
        x, y = thinned(queue["time_s"].to_numpy(), value.to_numpy())
        yield "packets" if packets else "kilobytes", x, y, 1e-2


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Where values change; of too many points, the least and the greatest of each stretch."""
    if len(x) > 2:
        kept = np.append(True, y[1:] != y[:-1])
        kept[-1] = True
        x, y = x[kept], y[kept]
    if len(x) <= most:
        return x, y
    edges = np.linspace(x[0], x[-1], most // 2 + 1)[1:-1]
    values = pd.Series(y).groupby(np.searchsorted(edges, x, side="right"))
    places = np.unique(np.concatenate([values.idxmin(), values.idxmax(), [len(x) - 1]]))
    return x[places], y[places]
