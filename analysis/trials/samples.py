"""What a trial sampled and counted while it ran, and what its programs reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from analysis.trials.documents import (
    Counters,
    Iperf3Report,
    Medium,
    ShownDiscipline,
    ShownDisciplines,
    read_trial_document,
)
from testbed.errors import TestbedError, short
from testbed.machine import safe_files
from testbed.scenario.network import Step
from testbed.store.names import (
    COUNTERS_FILE,
    DELAY_NODE,
    LEAF_HANDLE,
    LINK_CHANGES,
    QDISCS_FILE,
    QUEUE_SAMPLES,
    RADIO_FILE,
    SAMPLED_TEXTS,
    SOCKET_SAMPLES,
    Table,
    report_file,
)
from testbed.store.reading import Trial, again
from testbed.store.records import FlowRecord

MAX_SAMPLE = 1 << 53
WIRE_END = re.compile(r"w(?P<link>\d{1,4})(?P<end>[ab])")  # an interface of the node that delays


def read_samples(trial: Trial, table: Table) -> pd.DataFrame | None:
    """Read a table of samples; None if the trial took none."""
    path = trial.file(table.file)
    if path is None:
        return None
    try:
        samples = pd.read_csv(safe_files.table(path), usecols=list(table.columns), low_memory=False)
        _check_numbers(samples, table)
    except (OSError, ValueError) as error:  # pandas' own are ValueErrors
        why = f"{path}: damaged: {short(error)}"
        raise TestbedError(why, f"run it again: {again(trial.path)}") from error
    return None if samples.empty else samples


def read_columns(trial: Trial, table: Table, columns: Sequence[str]) -> pa.Table | None:
    """Read some columns of a table of samples, numbers as floats; None if the trial took none.

    It takes a fifth of the time of `read_samples`, which counts on a page of thousands of trials.
    """
    path = trial.file(table.file)
    if path is None:
        return None
    types = {name: pa.string() if name in SAMPLED_TEXTS else pa.float64() for name in columns}
    convert = csv.ConvertOptions(include_columns=list(columns), column_types=types)
    try:
        serial = csv.ReadOptions(use_threads=False)
        samples = csv.read_csv(str(safe_files.table(path)), serial, convert_options=convert)
        numbers = (samples[name].to_numpy() for name in columns if name not in SAMPLED_TEXTS)
        if any((np.abs(values) >= MAX_SAMPLE).any() for values in numbers):
            raise ValueError("a number beyond all bounds")
        needed = columns if table is QUEUE_SAMPLES else ("time_s",)
        if any(samples[name].null_count for name in needed):
            raise ValueError("a sample without a value")
    except (OSError, ValueError, KeyError) as error:  # pyarrow's own are these, too
        why = f"{path}: damaged: {short(error)}"
        raise TestbedError(why, f"run it again: {again(trial.path)}") from error
    return samples if len(samples) else None


def by_flow(samples: pa.Table) -> dict[str, pa.Table]:
    """Return each flow's samples: with a thousand flows, a search for each would take minutes."""
    flows = samples["flow"].combine_chunks().dictionary_encode()
    codes = flows.indices.to_numpy()
    of_flow = samples.take(np.argsort(codes, kind="stable"))
    counts = np.bincount(codes, minlength=len(flows.dictionary))
    firsts = np.cumsum(counts) - counts
    names = flows.dictionary.to_pylist()
    return {n: of_flow.slice(f, c) for n, f, c in zip(names, firsts, counts, strict=True)}


def _check_numbers(samples: pd.DataFrame, table: Table) -> None:
    """Raise an error if a column of numbers has something else, as somebody may have written."""
    if samples.empty:
        return
    numbers = samples[[name for name in table.columns if name not in SAMPLED_TEXTS]]
    values = numbers.to_numpy()  # all together: a column at a time would take a fifth of a report
    if values.dtype.kind not in "iuf":
        name = next(iter(numbers.select_dtypes(exclude="number")), "")
        raise ValueError(f"{name}: not only numbers")
    if ((values >= MAX_SAMPLE) | (values <= -MAX_SAMPLE)).any():
        raise ValueError("a number beyond all bounds")
    # a change of a link has no time if the trial ended before it
    time = "planned_s" if table is LINK_CHANGES else "time_s"
    needed = samples if table is QUEUE_SAMPLES else samples.filter([time])
    if needed.isna().any(axis=None):
        raise ValueError("a sample without a value")


def read_counters(trial: Trial, node: str) -> dict[str, int]:
    """Read a node's kernel counters over the trial; empty if they were not stored."""
    return (read_trial_document(trial, COUNTERS_FILE, Counters) or {}).get(node, {})


def total_counter(trial: Trial, name: str) -> int | None:
    """Sum a kernel counter over all nodes; None if counters were not stored."""
    counters = read_trial_document(trial, COUNTERS_FILE, Counters)
    return None if counters is None else sum(node.get(name, 0) for node in counters.values())


class Samples:
    """The samples of sockets and queues, each table read once."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._flows: dict[str, pd.DataFrame | None] = {}

    @cached_property
    def sockets(self) -> pd.DataFrame | None:
        """The samples of TCP sockets."""
        return read_samples(self._trial, SOCKET_SAMPLES)

    @cached_property
    def queues(self) -> pd.DataFrame | None:
        """The samples of queues."""
        return read_samples(self._trial, QUEUE_SAMPLES)

    def flow(self, flow: FlowRecord) -> pd.DataFrame | None:
        """Return the samples of a flow's sockets up to its stop."""
        if flow.name not in self._flows:
            self._flows[flow.name] = self._of_flow(flow)
        return self._flows[flow.name]

    def _of_flow(self, flow: FlowRecord) -> pd.DataFrame | None:
        if self.sockets is None:
            return None
        of_flow = self.sockets[
            (self.sockets["flow"] == flow.name) & (self.sockets["time_s"] <= flow.stopped_s + 1e-6)
        ]
        return None if of_flow.empty else of_flow

    def queue(self, interface: str) -> pd.DataFrame | None:
        """Return the samples of one interface's queue."""
        if self.queues is None:
            return None
        of_queue = self.queues[self.queues["interface"] == interface]
        return None if of_queue.empty else of_queue

    def queue_end(self, interface: str) -> pd.Series[Any] | None:
        """Return a queue's counters in its last sample."""
        samples = self.queue(interface)
        return None if samples is None else samples.iloc[-1]

    def last_s(self) -> float:
        """Return the time of the last sample; 0 if nothing was sampled."""
        tables = (self.sockets, self.queues)
        times = (float(table["time_s"].iloc[-1]) for table in tables if table is not None)
        return max(times, default=0.0)


class Disciplines:
    """Every queue discipline of a trial; nothing where the report is missing."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    @cached_property
    def _by_node(self) -> ShownDisciplines:
        return read_trial_document(self._trial, QDISCS_FILE, ShownDisciplines) or {}

    @cached_property
    def leaves(self) -> dict[str, ShownDiscipline]:
        """The queue of each shaped interface."""
        return {
            each["dev"]: each
            for node in self._by_node.values()
            for each in node
            if each["handle"] == LEAF_HANDLE
        }

    def drops(self) -> dict[str, int]:
        """Return the number of packets dropped by each shaped interface's queue."""
        return {name: leaf["drops"] for name, leaf in self.leaves.items()}

    def wires(self) -> Iterator[tuple[Step, ShownDiscipline]]:
        """Yield every netem that delays a link, with the direction of the packets in it."""
        links = self._trial.scenario.network.links
        for each in self._by_node.get(DELAY_NODE, []):
            match = WIRE_END.fullmatch(each["dev"])
            if match and each["kind"] == "netem" and int(match["link"]) < len(links):
                yield (
                    (int(match["link"]), int(match["end"] == "a")),
                    each,
                )  # they came in by the other

    def put_ahead(self) -> list[tuple[float, int, int]]:
        """Return each reordering link's chance, and how many packets overtook and crossed.

        netem counts packets that it puts ahead as requeued.
        """
        reordering = ((each.get("options", {}).get("reorder"), each) for _, each in self.wires())
        return [
            (chance["reorder"], each["requeues"], each["packets"])
            for chance, each in reordering
            if chance
        ]

    def lost_by_netem(self) -> int:
        """Return the packets lost by links that the scenario lets lose some, or be down."""
        links = self._trial.scenario.network.links
        return sum(
            each["drops"]
            for (number, end), each in self.wires()
            if links[number].directions[end].loses_packets
        )


def read_medium(trial: Trial) -> Medium | None:
    """Read the medium's counters; None if the trial had no radio, or it left no report."""
    return read_trial_document(trial, RADIO_FILE, Medium)


def frames_lost(trial: Trial) -> int:
    """Frames that a radio gave up after its last attempt."""
    medium = read_medium(trial)
    return sum(radio["lost"] for radio in medium["radios"]) if medium else 0


def read_iperf3(trial: Trial, flow: FlowRecord, side: str) -> Iperf3Report | None:
    """Read the report of iperf3's client or server; None if it left none."""
    return read_trial_document(trial, report_file(flow.name, side), Iperf3Report)
