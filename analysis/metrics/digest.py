"""The series and quantiles of a trial that figures and claims need beside the metrics.

They are one table: a row has a flow, the name of the series or distribution, an x and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import PacketArrays
from analysis.metrics.metric import MeasuredFlow
from analysis.trials.packets import epoch_ns
from analysis.trials.series import ROUND_STEPS_S, Floats, means, rates_mbps
from testbed.errors import TestbedError
from testbed.scenario.model import FlowKind
from testbed.scenario.network import FRAME_BYTES
from testbed.store.reading import Trial

Integers = npt.NDArray[np.int64]
SeriesPart = tuple[str, Floats, Floats]  # what, x, value

THROUGHPUT_BIN_S = 1.0
QUANTILE_FRACTIONS = np.concatenate(
    ([0.0, 0.001, 0.005], np.arange(1, 100) / 100, [0.995, 0.999, 1.0])
)

# `what` of a part, and its x and value
THROUGHPUT_SERIES = "throughput_mbps"  # x: the bin's middle, in seconds of the trial's clock
DELAY_QUANTILES = "owd_ms"  # x: a fraction; value: the quantile
RTT_QUANTILES = "rtt_ms"  # the same


def flow_series(flow: MeasuredFlow) -> Iterator[SeriesPart]:
    """Yield a flow's throughput and the quantiles of its delays, as far as its captures reach."""
    receiver, delays, rtts = (
        flow.packets_at("receiver"),
        flow.delays("sender", "receiver"),
        flow.round_trips,
    )
    if receiver is not None:
        yield _throughput(flow, receiver.data)
    if delays is not None:
        yield _quantiles(DELAY_QUANTILES, flow.measured(delays, "sent_ns", "owd_ms"))
    if rtts is not None:
        yield _quantiles(RTT_QUANTILES, flow.measured(rtts, "time_ns", "rtt_ms"))


def _throughput(flow: MeasuredFlow, data: PacketArrays) -> SeriesPart:
    seconds = (data["time_ns"] - epoch_ns(flow.trial)) / 1e9
    sizes, record = data["length"], flow.record
    rates = rates_mbps(seconds, sizes, record.started_s, record.stopped_s, THROUGHPUT_BIN_S)
    return THROUGHPUT_SERIES, rates.time_s, rates.value


def _quantiles(what: str, values: Floats) -> SeriesPart:
    if not len(values):
        return what, QUANTILE_FRACTIONS[:0], values
    return what, QUANTILE_FRACTIONS, np.quantile(values, QUANTILE_FRACTIONS)


SECOND_PREFIX = "second: "  # followed by one of SECOND_VALUES; x: the second
SECOND_DELAYS = ("owd", "rtt", "recovery")
SECOND_VALUES = (
    "throughput_mbps",
    *(f"{name}_{what}" for name in SECOND_DELAYS for what in ("ms", "n")),
)
SECOND_COLUMNS = ("flow", "second", *SECOND_VALUES)
DELAY_BY_SECOND = f"{SECOND_PREFIX}owd_ms"


FINE_PREFIX = "fine: "  # followed by one of the two below; x: the middle of a short step
FINE_THROUGHPUT, FINE_DELAY = f"{FINE_PREFIX}throughput_mbps", f"{FINE_PREFIX}owd_ms"
FINE_STEPS, FINE_FRAMES = 240, 20  # steps of a trial at most; frames that a step can carry at least
MAX_FINE_FLOWS = 12  # of a trial: more curves than that cannot be told apart
# kinds of series that only the plots over time read
OVER_TIME_PREFIXES = (SECOND_PREFIX, FINE_PREFIX)


class NotMeasured(TestbedError):
    """The results at hand lack what is asked for."""


def second_series(flow: MeasuredFlow) -> Iterator[SeriesPart]:
    """Yield a flow's rate and mean delays second by second; nothing if it was not captured."""
    receiver = flow.packets_at("receiver")
    if receiver is None:
        return
    zero, count = epoch_ns(flow.trial), int(np.ceil(flow.trial.scenario.duration_s))
    x = np.arange(count, dtype=np.float64)
    came = receiver.data
    rates = _sums(came["time_ns"], came["length"], zero, count) * 8e-6
    yield f"{SECOND_PREFIX}throughput_mbps", x, rates
    for name, (times_ns, delays_ms) in _delays(flow).items():
        numbers = _sums(times_ns, np.ones(len(times_ns)), zero, count)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield f"{SECOND_PREFIX}{name}_ms", x, _sums(times_ns, delays_ms, zero, count) / numbers
        yield f"{SECOND_PREFIX}{name}_n", x, numbers


def fine_series(flow: MeasuredFlow) -> Iterator[SeriesPart]:
    """Yield a flow's rate and mean delay in short steps, in which an outage of half a second shows.

    Steps that would be as long as a second are left to the series of a second.
    """
    receiver, record = flow.packets_at("receiver"), flow.record
    step_s = fine_step_s(flow.trial)
    if receiver is None or not step_s or len(flow.trial.record.flows) > MAX_FINE_FLOWS:
        return
    zero = epoch_ns(flow.trial)
    seconds, sizes = (receiver.data["time_ns"] - zero) / 1e9, receiver.data["length"]
    rates = rates_mbps(seconds, sizes, record.started_s, record.stopped_s, step_s)
    yield FINE_THROUGHPUT, rates.time_s, rates.value
    delays = flow.delays("sender", "receiver")
    if delays is not None:
        times_ns, delays_ms = _columns(delays, "sent_ns", "owd_ms")
        sent_s = (times_ns - zero) / 1e9
        inside = (sent_s >= 0) & (sent_s < flow.trial.scenario.duration_s)  # a record may be wrong
        binned = means(sent_s[inside], delays_ms[inside], step_s)
        yield FINE_DELAY, binned.time_s, binned.value


def fine_step_s(trial: Trial) -> float:
    """Return a round step that shows the trial's changes, or 0 if it is not below a second."""
    frame_s = 8 * FRAME_BYTES / (trial.scenario.network.bottleneck_mbit * 1e6)
    least = max(trial.scenario.duration_s / FINE_STEPS, FINE_FRAMES * frame_s) * 0.999
    step_s = next((step for step in ROUND_STEPS_S if step >= least), THROUGHPUT_BIN_S)
    return step_s if step_s < THROUGHPUT_BIN_S else 0.0


def _delays(flow: MeasuredFlow) -> dict[str, tuple[Integers, Floats]]:
    """Return times and delays of each kind; nothing where they cannot be known."""
    tables = dict.fromkeys(SECOND_DELAYS, (np.zeros(0, np.int64), np.zeros(0)))
    delays = flow.delays("sender", "receiver")
    if delays is not None:
        tables["owd"] = _columns(delays, "sent_ns", "owd_ms")
    if flow.scenario_flow.kind is not FlowKind.TCP:
        return tables
    if flow.round_trips is not None and flow.recoveries is not None:
        tables["rtt"] = _columns(flow.round_trips, "time_ns", "rtt_ms")
        tables["recovery"] = _columns(flow.recoveries, "sent_ns", "recovery_ms")
    return tables


def _columns(table: pd.DataFrame, time: str, value: str) -> tuple[Integers, Floats]:
    return table[time].to_numpy(dtype=np.int64), table[value].to_numpy(dtype=np.float64)


def _sums(times_ns: Integers, values: npt.NDArray[Any], zero: int, count: int) -> Floats:
    """Sum the values in each second; those outside the trial are left out."""
    places = (times_ns - zero) // 1_000_000_000
    inside = (places >= 0) & (places < count)
    weights = np.asarray(values[inside], dtype=np.float64)
    return np.asarray(
        np.bincount(places[inside], weights=weights, minlength=count), dtype=np.float64
    )


def seconds_table(trial: Trial, digest: pd.DataFrame) -> pd.DataFrame:
    """One row per flow and second, from a whole digest: SECOND_COLUMNS."""
    by_second = digest[digest["what"].str.startswith(SECOND_PREFIX)]
    known = set(by_second["flow"])
    if any(flow.name not in known for flow in trial.record.flows):
        raise NotMeasured(
            f"{trial.path.name}: no capture at the receiver is left", "run it with --captures keep"
        )
    tables = [_flow_table(str(flow), by_second) for flow in by_second["flow"].unique()]
    return (
        pd.concat(tables, ignore_index=True)
        if tables
        else pd.DataFrame(columns=list(SECOND_COLUMNS))
    )


def _flow_table(flow: str, digest: pd.DataFrame) -> pd.DataFrame:
    rows = digest[digest["flow"] == flow]
    what, x, value = (rows[name].to_numpy() for name in ("what", "x", "value"))
    seconds = x[what == f"{SECOND_PREFIX}{SECOND_VALUES[0]}"].astype(np.int64)
    columns = {name: value[what == f"{SECOND_PREFIX}{name}"] for name in SECOND_VALUES}
    return pd.DataFrame({"flow": flow, "second": seconds, **columns}, columns=list(SECOND_COLUMNS))


SERIES_COLUMNS = ("flow", "what", "x", "value")

# The parts of a flow's digest; a part of a kind of flow yields nothing for the others.
ALL_SERIES: tuple[Callable[[MeasuredFlow], Iterator[SeriesPart]], ...] = (
    flow_series,
    second_series,
    fine_series,
)


def series_table(flows: Iterable[MeasuredFlow]) -> pd.DataFrame:
    """Return the series and quantiles of all flows, one under the other."""
    parts = [
        (flow.record.name, *part) for flow in flows for find in ALL_SERIES for part in find(flow)
    ]
    lengths = [len(x) for _, _, x, _ in parts]
    names, whats, x, value = zip(*parts, strict=True) if parts else ((), (), (), ())
    columns = (
        *(pd.Series(texts, dtype="str").repeat(lengths).array for texts in (names, whats)),
        *(np.concatenate([np.zeros(0), *each]) for each in (x, value)),
    )
    return pd.DataFrame(dict(zip(SERIES_COLUMNS, columns, strict=True)))
