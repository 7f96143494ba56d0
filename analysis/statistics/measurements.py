"""What other tools have measured, beside our own: Flent's data, iperf3's reports, trials.

All of them become series of goodput and of delay. Files are anybody's: what is in them is read
with limits, and what they do not hold is said in a sentence.
"""

from __future__ import annotations

import json
import math
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.metrics.metric_rows import invalid
from analysis.metrics.rates import jain
from analysis.results.reduction import reduction_of
from analysis.statistics.tolerances import Tolerance
from testbed.errors import TestbedError, UsageError, number_of, printable
from testbed.machine import json_files
from testbed.machine.safe_files import UnfitFile, read_bytes
from testbed.store.reading import Trial, is_trial, open_trial, trials_in
from testbed.store.records import Status

MAX_MEASUREMENT_BYTES = 1 << 26  # as it lies on the disk
MAX_MEASURED_SERIES = 2000  # of one file
MEASUREMENT_SUFFIXES = (".flent.gz", ".flent", ".json", ".json.gz")
GOODPUT_SERIES, DELAY_SERIES = "goodput", "delay"
SERIES_UNITS = {GOODPUT_SERIES: "Mbit/s", DELAY_SERIES: "ms"}
FLENT_QUANTITIES = {"mbits/s": GOODPUT_SERIES, "mbit/s": GOODPUT_SERIES, "ms": DELAY_SERIES}
FLENT_SUMS = ("avg", "sum", "totals", "fairness")  # that Flent makes of its other series
FLENT_MACHINES = ("qdisc_stats", "cpu_stats")  # of the machines on the way
FLENT_PARTS = {"tcp_rtt": DELAY_SERIES, "delay": DELAY_SERIES}  # behind `::`, in ms
MEASUREMENT_HINT = "Flent's .flent.gz, a report of `iperf3 --json`, or a results folder"
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredSeries:
    """A flow's goodput, or delays that something measured, over time."""

    name: str
    quantity: str
    seconds: Numbers  # the middle of what each value is of
    widths_s: Numbers
    values: Numbers

    @property
    def mean(self) -> float:
        """The mean over the time in which it has values."""
        return float(np.average(self.values, weights=self.widths_s))

    def quantile(self, share: float) -> float:
        """Return the value below which a share of the values lies."""
        return float(np.quantile(self.values, share))


@dataclass(frozen=True)
class Measurement:
    """The series of one run of a tool."""

    name: str
    tool: str
    series: tuple[MeasuredSeries, ...]

    def of(self, quantity: str) -> list[MeasuredSeries]:
        """Return the series of goodput, or those of delay."""
        return [each for each in self.series if each.quantity == quantity]

    def metrics(self) -> Mapping[str, float]:
        """Return what can be compared, by the names that our own tables have for it."""
        numbers = dict[str, float]()
        if flows := self.of(GOODPUT_SERIES):
            begin = min(float((each.seconds - each.widths_s / 2).min()) for each in flows)
            end = max(float((each.seconds + each.widths_s / 2).max()) for each in flows)
            sent = sum(float((each.values * each.widths_s).sum()) for each in flows)
            numbers["goodput_mbps"] = sent / (end - begin)
        if len(flows) > 1:
            numbers["jain"] = jain(each.mean for each in flows)
        if delays := self.of(DELAY_SERIES):
            values = np.concatenate([each.values for each in delays])
            numbers["rtt_mean_ms"] = float(values.mean())
            numbers["rtt_p95_ms"] = float(np.quantile(values, 0.95))
        return numbers


def is_measurement(path: Path) -> bool:
    """Return whether a path names another tool's file, by its ending, or a folder of such files."""
    if path.is_dir() and not is_trial(path):
        return any(each.name.endswith(MEASUREMENT_SUFFIXES[:2]) for each in path.iterdir())
    return path.is_file() and path.name.endswith(MEASUREMENT_SUFFIXES)


def measurements_of(path: Path) -> list[Measurement]:
    """Return the runs that a path holds: a file's, those of a folder's files, or our trials'."""
    if path.is_dir() and is_measurement(path):
        files = (each for each in path.iterdir() if each.name.endswith(MEASUREMENT_SUFFIXES))
        return [_read_measurement(each) for each in sorted(files)]
    if path.is_file():
        return [_read_measurement(path)]
    return _of_trials(path)


def _read_measurement(path: Path) -> Measurement:
    try:
        content = read_bytes(path, MAX_MEASUREMENT_BYTES)
        if path.name.endswith(".gz"):
            content = json_files.unpacked(content, json_files.MAX_VALUES)
        data = json_files.parse(content)
    except (OSError, UnfitFile, ValueError, RecursionError, zlib.error) as error:
        reason = "not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
        raise TestbedError(f"{path}: {reason}", MEASUREMENT_HINT) from error
    for reader in (_flent, _iperf3):
        try:
            measurement = reader(path.name, data)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TestbedError(f"{path}: damaged: {error}", MEASUREMENT_HINT) from error
        if measurement is not None:
            return measurement
    raise TestbedError(f"{path}: neither Flent's data nor a report of iperf3", MEASUREMENT_HINT)


def _flent(name: str, data: Any) -> Measurement | None:
    """Return the series of Flent's data, without what it computes of them."""
    if not isinstance(data, dict) or not {"results", "x_values", "metadata"} <= data.keys():
        return None
    x = np.array(data["x_values"], dtype=float)
    if len(x) < 2:
        raise ValueError("it has no values")
    series_facts = data["metadata"].get("SERIES_META") or {}
    step_s = float(np.median(np.diff(x)))
    measured = []
    for series, values in data["results"].items():
        quantity = _flent_quantity(series, series_facts)
        numbers = np.array([math.nan if v is None else v for v in values], dtype=float)
        known = np.isfinite(numbers)
        if quantity and known.any():
            widths = np.full(int(known.sum()), step_s)
            measured.append(MeasuredSeries(series, quantity, x[known], widths, numbers[known]))
    names = (data["metadata"].get(each) or "" for each in ("FLENT_VERSION", "NAME"))
    return _whole(name, " ".join(("Flent", *map(str, names))), measured)


def _flent_quantity(series: str, facts: Mapping[str, Any]) -> str:
    """Return what a series measures; empty for sums, and for what is neither goodput nor delay."""
    first, _, part = series.rpartition("::")
    if first and not part.isdigit():
        return "" if series.startswith(FLENT_MACHINES) else FLENT_PARTS.get(part, "")
    if series.split()[-1:] and series.split()[-1] in FLENT_SUMS:
        return ""
    if unit := (facts.get(series) or {}).get("UNITS"):
        return FLENT_QUANTITIES.get(str(unit).lower(), "")
    if "(ms)" in series:  # older data have no units
        return DELAY_SERIES
    return GOODPUT_SERIES if series.startswith(("TCP", "UDP upload", "UDP download")) else ""


def _iperf3(name: str, data: Any) -> Measurement | None:
    """Return a series of goodput for each stream of a report, and of its round trips."""
    if not isinstance(data, dict) or not {"start", "intervals"} <= data.keys():
        return None
    rows: dict[str, list[tuple[float, float, float, float]]] = {}
    for interval in data["intervals"]:
        for stream in interval["streams"]:
            if not stream.get("omitted"):
                rtt = stream.get("rtt", math.nan)
                row = (stream["start"], stream["end"], stream["bits_per_second"], rtt)
                way = {True: "sent ", False: "received "}.get(stream.get("sender"), "")
                rows.setdefault(f"{way}stream {stream['socket']}", []).append(row)
    if not rows and data.get("error"):
        raise ValueError(f"iperf3 says: {printable(str(data['error']))[:200]}")
    measured = []
    for series, values in rows.items():
        start, end, bits, rtt_us = np.array(values, dtype=float).T
        middle, widths = (start + end) / 2, end - start
        at = widths > 0
        measured.append(
            MeasuredSeries(series, GOODPUT_SERIES, middle[at], widths[at], bits[at] / 1e6)
        )
        timed = at & np.isfinite(rtt_us) & (rtt_us > 0)
        if timed.any():
            measured.append(
                MeasuredSeries(
                    series, DELAY_SERIES, middle[timed], widths[timed], rtt_us[timed] / 1e3
                )
            )
    return _whole(name, str(data["start"].get("version", "iperf3")), measured)


def _whole(name: str, tool: str, series: Sequence[MeasuredSeries]) -> Measurement:
    filled = tuple(each for each in series if len(each.values))
    if not filled:
        raise ValueError("it has neither goodput nor delays")
    if len(filled) > MAX_MEASURED_SERIES:
        raise ValueError(f"{len(filled)} series: {MAX_MEASURED_SERIES} are read")
    return Measurement(printable(name), " ".join(printable(tool).split()), filled)


def _of_trials(path: Path) -> list[Measurement]:
    """Return our trials, which have to be of one setting."""
    trials = [open_trial(path)] if is_trial(path) else list(trials_in(path))
    trials = [each for each in trials if each.record.status is Status.OK]
    labels = sorted({each.scenario.label or each.scenario.experiment for each in trials})
    if len(labels) != 1:
        hint = f"name a trial of it: {trials[0].path}" if trials else "`testbed run` makes trials"
        settings = number_of(len(labels), "setting")
        raise UsageError(f"{path}: {settings}; a file of another tool has one", hint)
    return [measurement for each in trials if (measurement := _of_trial(each))]


def _of_trial(trial: Trial) -> Measurement | None:
    """Return a trial's goodput and round trips by the second; None if it is invalid."""
    reduction = reduction_of(trial)
    flows = reduction.flows
    if invalid(flows).any():
        return None
    table = reduction.seconds
    measured = []
    for _, row in flows.iterrows():
        of_flow = table[table["flow"] == row["flow"]]
        second = of_flow["second"].to_numpy(dtype=float)
        during = (second + 1 > row["start_s"]) & (second < row["start_s"] + row["duration_s"])
        part = float(row["goodput_mbps"] / row["throughput_mbps"])  # of the bytes on the wire
        rates = of_flow["throughput_mbps"].to_numpy(dtype=float) * part
        delays = of_flow["rtt_ms"].to_numpy(dtype=float)
        for quantity, values in ((GOODPUT_SERIES, rates), (DELAY_SERIES, delays)):
            at = during & np.isfinite(values)
            if at.any():
                middle, ones = second[at] + 0.5, np.ones(int(at.sum()))
                measured.append(
                    MeasuredSeries(str(row["flow"]), quantity, middle, ones, values[at])
                )
    return Measurement(trial.path.name, "testbed", tuple(measured))


@dataclass(frozen=True)
class ComparedMeasurement:
    """A number that both sides have: means over their runs."""

    metric: str
    a: float
    b: float
    tolerance: Tolerance

    @property
    def agrees(self) -> bool:
        """Whether B is as close to A as the tolerance says."""
        return abs(self.b - self.a) <= self.tolerance.of(self.a)


def compare_measurements(
    a: Sequence[Measurement], b: Sequence[Measurement], tolerances: Mapping[str, Tolerance]
) -> list[ComparedMeasurement]:
    """Return the numbers that both sides have, each the mean over its runs."""
    sides = [[each.metrics() for each in side] for side in (a, b)]
    common = [name for name in sides[0][0] if all(name in m for side in sides for m in side)]
    means = [{n: statistics.fmean(m[n] for m in side) for n in common} for side in sides]
    return [
        ComparedMeasurement(name, means[0][name], means[1][name], tolerances[name])
        for name in common
        if name in tolerances
    ]


def series_rows(measurements: Sequence[Measurement]) -> Iterator[tuple[str, ...]]:
    """Yield a row of text for each series of a run: what it is of, mean, and its quantiles."""
    for each in measurements[:1]:
        for one in sorted(each.series, key=lambda series: series.quantity != GOODPUT_SERIES):
            numbers = (one.mean, one.quantile(0.05), one.quantile(0.5), one.quantile(0.95))
            unit = f"{one.quantity} {SERIES_UNITS[one.quantity]}"
            yield (printable(one.name), unit, *(f"{number:.4g}" for number in numbers))


def binned(series: MeasuredSeries, width_s: float = 1.0) -> pd.DataFrame:
    """Return a series in bins for a figure: `time_s` and `value`."""
    place = np.floor(series.seconds / width_s)
    table = pd.DataFrame({"place": place, "value": series.values}).groupby("place")["value"].mean()
    times = (table.index.to_numpy(dtype=float) + 0.5) * width_s
    return pd.DataFrame({"time_s": times, "value": table.to_numpy(dtype=float)})
