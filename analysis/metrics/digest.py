"""The series and quantiles of a trial that figures and claims need beside the metrics.

They are one table: a row has a flow, the name of the series or distribution, an x and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.lengths import packet_lengths
from analysis.captures.tcp import PacketArrays
from analysis.metrics.metric import MeasuredFlow
from analysis.metrics.video_columns import ERRORS, packets_per_second
from analysis.trials.packets import FlowTables, epoch_ns
from analysis.trials.series import Floats, rates_mbps
from testbed.errors import TestbedError
from testbed.scenario.model import FlowKind
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
    found = rates_mbps(seconds, sizes, record.started_s, record.stopped_s, THROUGHPUT_BIN_S)
    return THROUGHPUT_SERIES, found.time_s, found.value


def _quantiles(what: str, values: Floats) -> SeriesPart:
    if not len(values):
        return what, QUANTILE_FRACTIONS[:0], values
    return what, QUANTILE_FRACTIONS, np.quantile(values, QUANTILE_FRACTIONS)


# `what` of a part; x: the middle of a second since the first packet; value: packets in it
VIDEO_PACKETS = "packets_pps"
VIDEO_ERRORS = "errors_pps"
# … followed by a column of Wireshark's packet lengths; x: the line, 0 for all packets
VIDEO_LENGTHS = "lengths "


def video_series(flow: MeasuredFlow) -> Iterator[SeriesPart]:
    """Yield packets per second and packet lengths at a video's viewer, if that was captured."""
    receiver = flow.tables("receiver") if flow.scenario_flow.kind is FlowKind.VIDEO else None
    if receiver is not None:
        yield from video_parts(receiver, with_errors=flow.is_tcp and not flow.has_cut_headers)


def video_parts(found: FlowTables, *, with_errors: bool) -> Iterator[SeriesPart]:
    """Packets and errors second by second, in both directions, and the lengths of packets."""
    both = pd.concat((found.data, found.acks)).sort_values("frame")
    if both.empty:
        return
    begin_ns = int(both["time_ns"].iloc[0])
    yield _video_seconds(VIDEO_PACKETS, both, begin_ns)
    if with_errors:
        yield _video_seconds(VIDEO_ERRORS, both[both[list(ERRORS)].any(axis=1)], begin_ns)
    table = packet_lengths(both["time_ns"].to_numpy(), both["length"].to_numpy(), begin_ns)
    for name in table.columns.drop("lengths"):
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        yield f"{VIDEO_LENGTHS}{name}", np.arange(len(table), dtype=np.float64), values


def _video_seconds(what: str, rows: pd.DataFrame, begin_ns: int) -> SeriesPart:
    counts = packets_per_second(rows, begin_ns).astype(np.float64)
    return what, np.arange(len(counts), dtype=np.float64) + 0.5, counts


def lengths_of(digest: pd.DataFrame) -> pd.DataFrame:
    """One flow's packet lengths, one row per line of Wireshark's window."""
    own = digest[digest["what"].str.startswith(VIDEO_LENGTHS)]
    table = own.assign(what=own["what"].str.removeprefix(VIDEO_LENGTHS))
    return table.pivot_table(index="x", columns="what", values="value", dropna=False).sort_index()


SECOND_PREFIX = "second: "  # followed by one of SECOND_VALUES; x: the second
SECOND_DELAYS = ("owd", "rtt", "recovery")
SECOND_VALUES = (
    "throughput_mbps",
    *(f"{name}_{what}" for name in SECOND_DELAYS for what in ("ms", "n")),
)
SECOND_COLUMNS = ("flow", "second", *SECOND_VALUES)
DELAY_BY_SECOND = f"{SECOND_PREFIX}owd_ms"


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
    own = digest[digest["what"].str.startswith(SECOND_PREFIX)]
    known = set(own["flow"])
    if any(flow.name not in known for flow in trial.record.flows):
        raise NotMeasured(
            f"{trial.path.name}: no capture at the receiver is left", "run it with --captures keep"
        )
    tables = [_flow_table(str(flow), own) for flow in own["flow"].unique()]
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
    video_series,
    second_series,
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
