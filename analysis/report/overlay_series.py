"""A trial's history in few numbers, for the page to lay two trials over each other: what the
digest and the samples know, without reading a capture."""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures.timeline.timeline_data import queue_samples, socket_samples
from analysis.metrics.digest import THROUGHPUT, NotMeasured
from analysis.report.page_plot import Json, packed
from analysis.results.reduction import Reduction, reduction_of
from analysis.trials.samples import Samples
from analysis.trials.series import Floats
from testbed.store import FlowRecord, Trial

MOST = 800  # points of a series: about one per pixel
MILLISECOND = 1e-3
History = tuple[str, Floats, Floats, float]  # what, times, values, the least difference of values


@dataclass(frozen=True)
class _ReadOnce:
    """What is read of a trial for all its flows together."""

    trial: Trial
    digest: pd.DataFrame
    seconds: pd.DataFrame | None
    samples: Samples


def trial_text(trial: Trial) -> str:
    """The trial's series by flow: compressed JSON in base64, which is safe anywhere in a page."""
    reduction = reduction_of(trial)
    once = _ReadOnce(trial, reduction.series, _seconds(reduction), Samples(trial))
    found = {flow.name: _flow(once, flow) for flow in trial.record.flows}
    text = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _seconds(reduction: Reduction) -> pd.DataFrame | None:
    with contextlib.suppress(NotMeasured):
        return reduction.seconds
    return None


def _flow(once: _ReadOnce, flow: FlowRecord) -> Json:
    parts = (*_digested(once, flow), *_sampled(once, flow))
    return {
        what: {"x": packed(x, MILLISECOND), "y": packed(y, unit)}
        for what, x, y, unit in parts
        if len(x)
    }


def _digested(once: _ReadOnce, flow: FlowRecord) -> Iterator[History]:
    digest, seconds = once.digest, once.seconds
    own = digest[(digest["flow"] == flow.name) & (digest["what"] == THROUGHPUT)].dropna()
    yield "throughput", own["x"].to_numpy(), own["value"].to_numpy(), 1e-4
    if seconds is not None:
        delays = seconds[seconds["flow"] == flow.name][["second", "owd_ms"]].dropna()
        yield "delay", delays["second"].to_numpy() + 0.5, delays["owd_ms"].to_numpy(), 1e-2


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


def thinned(x: Floats, y: Floats, most: int = MOST) -> tuple[Floats, Floats]:
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
