"""A trial becomes one row a flow; a results folder becomes metrics.csv and metrics.parquet."""

from __future__ import annotations

import contextlib
import dataclasses
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

from analysis import measures
from analysis.axes import write_axes
from analysis.convergence import BIN_S, convergence_time_s
from analysis.definitions import COLUMNS, COUNTS, METRICS, NUMBERS, TEXTS
from analysis.fidelity import verdict as fidelity
from analysis.files import replace
from analysis.labels import queue_label
from analysis.matching import drop_rate, numbering_drop_rate, one_way_delays_ms
from analysis.measures import NAN, Interval
from analysis.packets import FlowPackets, TrialPackets, measured_interval
from analysis.samples import read_counters, read_samples
from testbed.errors import TestbedError
from testbed.scenario import Flow, FlowKind, Scenario
from testbed.store import FlowRecord, Status, Trial, trials_in

CACHE = "metrics.parquet"  # in the trial's directory
REVISION = 1  # raise it when a change here gives other numbers under the same definitions

TIMEOUTS = "TcpExtTCPTimeouts"

Row = dict[str, object]


def trial_metrics(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """One row a flow of the scenario; `attrs["warnings"]` says what to distrust.

    `packets` are its captures, if they are read for something else too.
    """
    packets = packets or TrialPackets(trial)
    records = {record.name: record for record in trial.record.flows}
    ran = trial.record.status is Status.OK
    verdict = fidelity.cached_verdict(trial, packets)
    judged = {"verdict": str(verdict.verdict), "why": verdict.why} if verdict else {}
    rows = [
        _identity(trial, flow)
        | judged
        | (_measure(trial, records[flow.name], packets) if ran and flow.name in records else {})
        for flow in trial.scenario.flows
    ]
    frame = _frame(rows)
    if ran:
        _compare_flows(frame)
    frame.attrs["warnings"] = [f"{trial.path.name}: {text}" for text in packets.warnings]
    return frame


def _identity(trial: Trial, flow: Flow) -> Row:
    """What is known of a flow before it runs."""
    scenario = trial.scenario
    return {
        "experiment": scenario.experiment,
        "trial": trial.path.name,
        "engine": trial.record.engine,
        "status": str(trial.record.status),
        "verdict": "",
        "why": "",
        "topology": str(scenario.topology.kind),
        "queue": queue_label(scenario.topology.bottleneck.queue),
        "flow": flow.name,
        "kind": str(flow.kind),
        "src": flow.src,
        "dst": flow.dst,
        "variant": flow.variant or "",
        "variant_seen": "",
        "label": scenario.label,
        "axes": write_axes(scenario.axes),
        "setting": setting(scenario, flow),
        "seed": scenario.seed,
    }


def setting(scenario: Scenario, flow: Flow) -> str:
    """A hash of all but the seed, this flow's variant, and what only looks on."""
    flows = tuple(
        dataclasses.replace(each, variant=None) if each is flow else each for each in scenario.flows
    )
    bare = dataclasses.replace(
        scenario,
        flows=flows,
        seed=0,
        label="",
        axes={},
        captures=(),
        snaplen_bytes=0,
        sample_interval_ms=0,
    )
    return bare.hash


def _measure(trial: Trial, flow: FlowRecord, packets: TrialPackets) -> Row:
    """What the captures say of a flow that ran."""
    interval = measured_interval(trial, flow)
    return {
        "variant_seen": flow.variant_seen,
        "start_s": flow.started_s,
        "duration_s": interval.seconds,
        **_at_receiver(packets.flow("receiver", flow), interval, flow.protocol),
        **_at_sender(packets.flow("sender", flow), flow.protocol),
        **_delays(packets, flow, "owd", ("sender", "receiver")),
        **_delays(packets, flow, "queue", ("bottleneck-in", "bottleneck-out")),
        "drop_rate": _drop_rate(packets, flow),
        **(_counted(trial, flow) if flow.protocol == "tcp" else {}),
    }


def _counted(trial: Trial, flow: FlowRecord) -> Row:
    """What the sender's kernel counted."""
    row: Row = {}
    sockets = read_samples(trial, "sockets.csv")
    if sockets is not None and len(own := sockets[sockets["flow"] == flow.name]):
        # a flow's connections are rows of the same instant
        row["retransmitted"] = int(own.groupby("time_s")["total_retrans"].sum().max())
    src = trial.scenario.flow(flow.name).src
    senders = [each for each in trial.scenario.flows if each.src == src]
    connections = sum(each.parallel for each in senders if each.kind is FlowKind.TCP)
    counters = read_counters(trial, src)
    if connections == 1 and TIMEOUTS in counters:
        row["timeouts"] = counters[TIMEOUTS]
    return row


def _at_receiver(found: FlowPackets | None, interval: Interval, protocol: str) -> Row:
    if found is None:
        return {}
    row: Row = {
        "throughput_mbps": measures.throughput_mbps(found.data, interval),
        "goodput_mbps": measures.goodput_mbps(found.data, interval, protocol),
        "received_packets": measures.data_packets(found.data),
        "convergence_s": _convergence_s(found.data, interval),
    }
    if protocol == "tcp":
        row["out_of_order"] = int(found.data["out_of_order"].sum())
    return row


def _convergence_s(data: pd.DataFrame, interval: Interval) -> float:
    """A bin without a packet is a rate of nought, not one that is not known."""
    own = data[interval.holds(data["time_ns"])]
    places = ((own["time_ns"].to_numpy() - interval.start_ns) / 1e9 / BIN_S).astype(np.int64)
    bins = int(interval.seconds / BIN_S) + 1
    sizes = np.bincount(places, weights=own["length"].to_numpy(), minlength=bins)
    middles = np.arange(0.5, bins) * BIN_S
    return convergence_time_s(
        middles.astype(np.float64), sizes[:bins].astype(np.float64), 0.0, interval.seconds
    )


def _at_sender(found: FlowPackets | None, protocol: str) -> Row:
    if found is None:
        return {}
    row: Row = {"sent_packets": measures.data_packets(found.data)}
    if protocol != "tcp":
        return row
    low, mean, high = measures.low_mean_high(measures.rtts(found.data, found.acks)["rtt_ms"])
    recovered = measures.recovery_latencies(found.data, found.acks)["recovery_ms"]
    _, recovery, _ = measures.low_mean_high(recovered)
    return row | {
        "retransmissions": int(found.data["retransmission"].sum()),
        "fast_retransmissions": int(found.data["fast_retransmission"].sum()),
        "spurious_retransmissions": int(found.data["spurious_retransmission"].sum()),
        "duplicate_acks": int(found.acks["duplicate_ack"].sum()),
        "rtt_min_ms": low,
        "rtt_mean_ms": mean,
        "rtt_p95_ms": high,
        "recovery_latency_mean_ms": recovery,
    }


def _delays(packets: TrialPackets, flow: FlowRecord, way: str, ends: tuple[str, str]) -> Row:
    """How long data packets take from one capture to the other."""
    before, after = (packets.flow(end, flow) for end in ends)
    if before is None or after is None:
        return {}
    delays = one_way_delays_ms(before.data, after.data)["owd_ms"]
    _, mean, high = measures.low_mean_high(delays)
    return {f"{way}_mean_ms": mean, f"{way}_p95_ms": high}


def _drop_rate(packets: TrialPackets, flow: FlowRecord) -> float:
    entered, left = packets.flow("bottleneck-in", flow), packets.flow("bottleneck-out", flow)
    if left is not None and flow.protocol == "udp" and packets.starts_at_bottleneck(flow.name):
        return numbering_drop_rate(left.data)
    if entered is None or left is None:
        return NAN
    return drop_rate(entered.data, left.data, packets.end_ns())


def _compare_flows(frame: pd.DataFrame) -> None:
    """Fill in what a flow is beside the others: share and Jain's index."""
    goodput = frame["goodput_mbps"]
    total = goodput.sum(skipna=False)
    frame["share"] = goodput / total if total > 0 else NAN
    tcp = goodput[frame["kind"] == FlowKind.TCP]
    frame["jain"] = measures.jain(tcp if len(tcp) else goodput)


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
