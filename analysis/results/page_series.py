"""A trial's series as a page plots them: thinned, packed, and stored with its tables.

No capture is read for them. Any two trials of a page can be laid over each other, so a page has
those of all its trials; packing them when it is made would take longer than all the rest.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute
from pydantic_core import from_json

from analysis.metrics.digest import (
    DELAY_BY_SECOND,
    FINE_DELAY,
    FINE_THROUGHPUT,
    THROUGHPUT_SERIES,
)
from analysis.trials.packets import sampled_queue
from analysis.trials.samples import by_flow, read_columns
from analysis.trials.series import Floats
from testbed.machine import json_files
from testbed.store.names import QUEUE_SAMPLES, SOCKET_SAMPLES
from testbed.store.reading import Trial
from testbed.store.records import DAMAGED, FlowRecord, QueueRecord

# a change of this file makes stored series stale: they are packed again
PACKER_VERSION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
MAX_SERIES_VALUES = 1 << 22  # of one trial, whose own limit it was held to when it was read
MAX_POINTS = 800  # points of a series: about one per pixel
Places = npt.NDArray[np.intp]
Json = dict[str, Any]
History = tuple[str, Floats, Floats, float]  # what, times, values, the least difference of values
HISTORIES = {"throughput", "delay", "window", "rtt", "packets", "kilobytes"}
SHOWN_OF_SOCKETS = ("time_s", "flow", "state", "cwnd", "srtt_ms")
SHOWN_OF_QUEUES = ("time_s", "interface", "backlog_bytes", "backlog_packets")
EXTREMES = (np.minimum, np.maximum)


def packed(values: npt.ArrayLike, unit: float = 1e-6) -> Json:
    """Return numbers as differences in whole units: a tenth of the letters of as many decimals."""
    whole = np.round(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)
    return {"d": np.diff(whole, prepend=0).tolist(), "k": unit}


def read_sampled(trial: Trial) -> tuple[pa.Table | None, pa.Table | None]:
    """Read what the page shows of the samples of sockets and of queues."""
    sockets = read_columns(trial, SOCKET_SAMPLES, SHOWN_OF_SOCKETS)
    return sockets, read_columns(trial, QUEUE_SAMPLES, SHOWN_OF_QUEUES)


def unpacked(text: str) -> dict[str, dict[str, tuple[Floats, Floats]]]:
    """Return a trial's series by flow and kind: times and values."""
    flows = from_json(
        json_files.unpacked(base64.b64decode(text), MAX_SERIES_VALUES, zlib.MAX_WBITS)
    )
    return {
        flow: {
            what: (_values_of(each["x"]), _values_of(each["y"])) for what, each in of_flow.items()
        }
        for flow, of_flow in flows.items()
    }


def _values_of(numbers: Json) -> Floats:
    values: Floats = np.cumsum(numbers["d"]) * numbers["k"]
    return values


def matches_trial(text: str, trial: Trial) -> bool:
    """Say whether a stored text can be this trial's: somebody else may have written it."""
    flows = {flow.name for flow in trial.record.flows}
    with contextlib.suppress(zlib.error, *DAMAGED):
        packed = base64.b64decode(text, validate=True)
        values = json_files.unpacked(packed, _max_values(trial), zlib.MAX_WBITS)
        series = from_json(values, allow_inf_nan=False)
        return series.keys() <= flows and all(map(_are_histories, series.values()))
    return False


def _max_values(trial: Trial) -> int:
    """Return how many values a trial's series may have, some of them one for each second."""
    points = 2 * MAX_POINTS + round(trial.scenario.duration_s)
    return 2 * points * len(HISTORIES) * len(trial.record.flows)


def _are_histories(value: Json) -> bool:
    return value.keys() <= HISTORIES and all(
        each.keys() == {"x", "y"} and all(map(_is_packed, each.values())) for each in value.values()
    )


def _is_packed(value: Json) -> bool:
    is_unit = type(value["k"]) in (int, float)
    return value.keys() == {"d", "k"} and is_unit and {*map(type, value["d"])} <= {int}


@dataclass(frozen=True)
class _ReadOnce:
    """The data of a trial that all of its flows share."""

    trial: Trial
    digest: Mapping[tuple[str, str], tuple[Floats, Floats]]  # by flow and what: x, value
    has_seconds: bool  # of all flows
    sockets: Mapping[str, pa.Table]  # by flow: samples of its open connections
    queues: Mapping[str, History]  # by interface


def trial_text(
    trial: Trial,
    series: pa.Table,
    sockets: pa.Table | None = None,
    queues: pa.Table | None = None,
) -> str:
    """Pack a trial's series by flow: compressed JSON in base64, which is safe in a page."""
    digest = _series_by_flow(series)
    with_seconds = {flow for flow, what in digest if what == DELAY_BY_SECOND}
    has_seconds = with_seconds >= {flow.name for flow in trial.record.flows}
    records = trial.record.queues if queues is not None else ()
    of_queues = {record.interface: _queue(queues, record) for record in records}
    once = _ReadOnce(trial, digest, has_seconds, _open_by_flow(sockets), of_queues)
    series_text = {flow.name: _flow(once, flow) for flow in trial.record.flows}
    text = json.dumps(series_text, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _series_by_flow(series: pa.Table) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """Return the known values of each of a digest's series; pandas would take ten times as long."""
    flows, whats = (series[name].combine_chunks() for name in ("flow", "what"))
    codes = flows.indices.to_numpy() * len(whats.dictionary) + whats.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    x, value = (series[name].to_numpy()[order] for name in ("x", "value"))
    known = np.isfinite(x) & np.isfinite(value)
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    parts = {}
    for first, last in itertools.pairwise([*firsts, len(order)]):
        part = slice(first, last)
        key = flows[int(order[first])].as_py(), whats[int(order[first])].as_py()
        parts[key] = x[part][known[part]], value[part][known[part]]
    return parts


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
    fine = once.digest.get((flow.name, FINE_THROUGHPUT))
    throughput = fine or once.digest.get((flow.name, THROUGHPUT_SERIES), nothing)
    yield ("throughput", *throughput, 1e-4)
    if (flow.name, FINE_DELAY) in once.digest:
        yield ("delay", *once.digest[flow.name, FINE_DELAY], 1e-2)
    elif once.has_seconds:
        second, delay_ms = once.digest.get((flow.name, DELAY_BY_SECOND), nothing)
        yield "delay", second + 0.5, delay_ms, 1e-2


def _of_sockets(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    """Yield the sum of the windows of a flow's connections, and the mean of their RTTs."""
    samples = once.sockets.get(flow.name)
    if samples is None:
        return
    times = samples["time_s"].to_numpy()
    begins = np.flatnonzero(np.diff(times, prepend=-np.inf))  # of samples of the same time
    window, rtts = (_summed(samples[name].to_numpy(), begins) for name in ("cwnd", "srtt_ms"))
    counted = np.maximum(_summed(np.isfinite(samples["srtt_ms"].to_numpy()), begins), 1)
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
    samples = queues.filter(compute.equal(queues["interface"], record.interface))
    packets = record.unit == "packets"
    value = (
        samples["backlog_packets"].to_numpy()
        if packets
        else samples["backlog_bytes"].to_numpy() / 1e3
    )
    x, y = thinned(samples["time_s"].to_numpy(), value)
    return "packets" if packets else "kilobytes", x, y, 1e-2


def thinned(x: Floats, y: Floats, most: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """Keep the points at which values change; of too many, each stretch's extremes and last."""
    if len(x) > 2:
        kept = np.append(True, y[1:] != y[:-1])
        kept[-1] = True
        x, y = x[kept], y[kept]
    if len(x) <= most:
        return x, y
    edges = np.linspace(x[0], x[-1], most // 3 + 1)[1:-1]
    stretch = np.searchsorted(edges, x, side="right")
    is_begin = np.diff(stretch, prepend=-1) != 0
    begins, number = np.flatnonzero(is_begin), np.cumsum(is_begin) - 1
    ends = [_firsts(y == extreme.reduceat(y, begins)[number], number) for extreme in EXTREMES]
    lasts = np.append(begins[1:], len(x)) - 1  # which hold until the next stretch has a change
    places = np.unique(np.concatenate([*ends, lasts]))
    return x[places], y[places]


def _firsts(chosen: npt.NDArray[np.bool_], number: Places) -> Places:
    """Return the first chosen place of each stretch; `number` is the stretch of each place."""
    places = np.flatnonzero(chosen)
    firsts: Places = places[np.diff(number[places], prepend=-1) != 0]
    return firsts
