"""`open_results`: a results folder as DataFrames, and its trials packet by packet."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.captures.inspection import Point, flow_record, pyshark_packets, view_of
from analysis.captures.tcp import CAPTURE_COLUMNS, read_capture
from analysis.metrics.metric_rows import AXIS, INVALID, counted
from analysis.results.experiment_results import collect
from analysis.trials.packets import TrialPackets, epoch_ns
from analysis.trials.samples import read_samples
from analysis.trials.series import rates_mbps
from analysis.trials.tcp_stream import round_trips
from testbed.bundles.opened import folders_of
from testbed.errors import TestbedError, UsageError, nearest
from testbed.machine.process import interruptible
from testbed.runs.orchestration import RunListener, RunOptions
from testbed.runs.what_if import WHAT_IF, Intervention, WhatIf, fate_of_one, what_if
from testbed.store.names import QUEUE_SAMPLES, SOCKET_SAMPLES, Table, results_folder
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, Status

if TYPE_CHECKING:
    from pyshark.packet.packet import Packet

FOLDER_ATTRIBUTE = "folder"  # of the rows that `run` returns
TRIALS_IN_WARNING = 5


class TrialResult(Trial):
    """A trial on disk: its `scenario`, its `record`, its `path`, and its packets."""

    def packets(
        self,
        display_filter: str = "",
        *,
        flow: str = "",
        point: str = Point.SENDER,
        count: int | None = None,
    ) -> list[Packet]:
        """Return pyshark's packets of a flow that pass Wireshark's display filter.

        `flow` is the first one unless named; `point` is sender, receiver, bottleneck-in or
        bottleneck-out. A packet's layers and fields are attributes: Wireshark's field
        `tcp.analysis.ack_rtt` is `packet.tcp.analysis_ack_rtt`. All is dissected in the testbed's
        Wireshark profile, which takes milliseconds for each packet: `count` ends it early, and
        `packet_table` is quick.
        """
        view = view_of(self, flow, point).narrowed(display_filter)
        with pyshark_packets(view) as packets:
            return list(itertools.islice(packets, count))

    def packet_table(self, *, flow: str = "", point: str = Point.SENDER) -> pd.DataFrame:
        """Return a row for each packet of a flow, in both directions, with TCP's analysis of it.

        `time_s` is the trial's time. The other columns are those of `testbed reduce --packets`.
        """
        rows = read_capture(view_of(self, flow, point).capture).rows[list(CAPTURE_COLUMNS)]
        ran = flow_record(self, flow)
        ends = {ran.src_address, ran.dst_address}
        rows = rows[rows["src"].isin(ends) & rows["dst"].isin(ends)]
        return rows.assign(time_s=(rows["time_ns"] - epoch_ns(self)) / 1e9).reset_index(drop=True)

    def what_if(
        self,
        set: Mapping[str, Any] | None = None,
        *,
        at_s: float | None = None,
        drop: int = 0,
        delay: tuple[int, float] | None = None,
        mark: int = 0,
        spare: int = 0,
        flow: str = "",
        queue: str = "",
        seeds: int = 1,
        out: str | os.PathLike[str] | None = None,
    ) -> WhatIf:
        """Run the trial again, as it was and with one thing changed, and compare.

        `set` has fields of the scenario with their new values, which hold from `at_s` on (a link's
        rate_mbit, delay_ms, loss, up, its queue's limit, ecn and options, a node's sysctls, a
        flow's control) or from the beginning. `drop` is the number of one packet of the flow's
        capture `bottleneck-out` that is lost instead, `mark` of one that gets a CE mark, `delay`
        such a number and the milliseconds by which that packet is later; `spare` is the number, in
        `bottleneck-in`, of one that the queue then has room for. `queue` names another queue of the
        flow by its interface or link. The trials are in `pairs`, the differences of metrics in
        `effects`.
        """
        texts = {
            place: value if isinstance(value, str) else json.dumps(value)
            for place, value in (set or {}).items()
        }
        folder = results_folder(WHAT_IF) if out is None else Path(out)
        options = RunOptions(seeds=seeds, engine="guest", out=folder)
        change = Intervention(texts, at_s, *fate_of_one(drop, delay, mark, spare), flow, queue)
        with interruptible():
            return what_if(self, change, options, f"what_if({change.description})", RunListener())


@dataclass(frozen=True)
class Results:
    """Trials of a results folder or of a run.

    `rows` has a row for each flow of the trials that count, `every_row` also those of trials that
    failed, could not run, or are invalid. Both have all columns of metrics.csv, and a column
    `axis_…` for each axis. The methods give flows and queues over time, a row for each point, with
    `time_s` since the trial's start, and beside it the trial, the flow, its variant and the axes.
    """

    folder: Path
    every_row: pd.DataFrame
    trials: tuple[TrialResult, ...]

    @property
    def rows(self) -> pd.DataFrame:
        """Return a row for each flow of the trials that count."""
        flow_rows = counted(self.every_row).reset_index(drop=True)
        flow_rows.attrs = {FOLDER_ATTRIBUTE: str(self.folder)}
        return flow_rows

    def where(self, **values: object) -> Results:
        """Return the trials that have a flow with these values of columns or axes."""
        chosen = self.every_row
        for name, value in values.items():
            chosen = chosen[chosen[self._column(name)] == value]
        names = set(chosen["trial"])
        kept = self.every_row[self.every_row["trial"].isin(names)]
        matching = tuple(trial for trial in self.trials if trial.path.name in names)
        return replace(self, every_row=kept, trials=matching)

    def throughput(self, step_s: float = 0.5) -> pd.DataFrame:
        """Return `throughput_mbps` of each flow at its receiver, in steps, with all headers."""
        return self._of_flows(
            lambda trial, packets, flow: _throughput(trial, packets, flow, step_s)
        )

    def round_trips(self) -> pd.DataFrame:
        """Return `rtt_ms` of each ACK of data sent once of each TCP flow, at its sender."""
        return self._of_flows(_round_trips)

    def sockets(self) -> pd.DataFrame:
        """Return samples of senders' sockets: `cwnd`, `ssthresh` (segments), `srtt_ms` and more."""
        return self._of_samples(SOCKET_SAMPLES)

    def queues(self) -> pd.DataFrame:
        """Return samples of the queues: `backlog_packets`, `backlog_bytes`, and counters."""
        return self._of_samples(QUEUE_SAMPLES)

    def warn_of_those_left_out(self) -> None:
        """Warn of the trials that do not count; raise if none does."""
        counting = {trial.path.name for trial in self._counting()}
        left_out = [trial for trial in self.trials if trial.path.name not in counting]
        told = "; ".join(map(self._why, left_out[:TRIALS_IN_WARNING]))
        text = f"{len(left_out)} of {len(self.trials)} trials are left out: {told}"
        if not counting:
            raise TestbedError(text, f"`testbed report {self.folder}` says more")
        if left_out:
            warnings.warn(text, stacklevel=3)

    def _why(self, trial: Trial) -> str:
        record, name = trial.record, trial.path.name
        if record.status is not Status.OK:
            return f"{name}: {record.status}: {record.reason}"
        (why, *_) = self.every_row.loc[self.every_row["trial"] == name, "why"]
        return f"{name}: {INVALID}: {why}"

    def _counting(self) -> Iterator[Trial]:
        names = set(counted(self.every_row)["trial"])
        return (trial for trial in self.trials if trial.path.name in names)

    def _column(self, name: str) -> str:
        for column in (name, AXIS + name):
            if column in self.every_row:
                return column
        raise UsageError(f"where: no column {name!r}", nearest(name, map(str, self.every_row)))

    def _of_flows(
        self, series: Callable[[Trial, TrialPackets, FlowRecord], pd.DataFrame | None]
    ) -> pd.DataFrame:
        def parts() -> Iterator[pd.DataFrame]:
            for trial in self._counting():
                packets = TrialPackets(trial)
                for flow in trial.record.flows:
                    series_parts = series(trial, packets, flow)
                    if series_parts is not None:
                        yield series_parts.assign(trial=trial.path.name, flow=flow.name)

        return self._with_axes(list(parts()), ["trial", "flow"])

    def _of_samples(self, table: Table) -> pd.DataFrame:
        samples = ((trial, read_samples(trial, table)) for trial in self._counting())
        parts = [
            of_trial.assign(trial=trial.path.name)
            for trial, of_trial in samples
            if of_trial is not None
        ]
        by_flow = "flow" in table.columns
        return self._with_axes(parts, ["trial", "flow"] if by_flow else ["trial"])

    def _with_axes(self, parts: list[pd.DataFrame], key: list[str]) -> pd.DataFrame:
        """Return the parts as one table, after columns for their trial, flow, variant and axes."""
        if not parts:
            return pd.DataFrame(columns=[*key, "time_s"])
        columns = [*key, *(["variant"] if "flow" in key else [])]
        known = [*columns, *(name for name in self.every_row if str(name).startswith(AXIS))]
        told = self.every_row[known].drop_duplicates(key)
        merged = pd.concat(parts, ignore_index=True).merge(told, on=key, how="left")
        return merged[[*known, *(name for name in merged if name not in known)]]


def open_results(results: str | Path | pd.DataFrame) -> Results:
    """Open a results folder, a run (`results/latest`), a bundle, or the rows that `run` gave.

    Trials that were not reduced yet are reduced now.
    """
    if isinstance(results, pd.DataFrame) and FOLDER_ATTRIBUTE not in results.attrs:
        raise UsageError("these rows are not as `run` returned them", "name the folder")
    folder = Path(results.attrs[FOLDER_ATTRIBUTE] if isinstance(results, pd.DataFrame) else results)
    all_results = collect(folders_of(folder)).experiments
    rows = pd.concat([each.rows for each in all_results], ignore_index=True)
    trials = tuple(
        TrialResult(trial.path, trial.scenario, trial.record)
        for each in all_results
        for trial in each.trials
    )
    return Results(folder, rows.drop(columns="number"), trials)


def _throughput(
    trial: Trial, packets: TrialPackets, flow: FlowRecord, step_s: float
) -> pd.DataFrame | None:
    received = packets.flow("receiver", flow)
    if received is None:
        return None
    seconds = (received.data["time_ns"].to_numpy() - epoch_ns(trial)) / 1e9
    sizes = received.data["length"].to_numpy()
    series = rates_mbps(seconds, sizes, flow.started_s, flow.stopped_s, step_s)
    return pd.DataFrame({"time_s": series.time_s, "throughput_mbps": series.value})


def _round_trips(trial: Trial, packets: TrialPackets, flow: FlowRecord) -> pd.DataFrame | None:
    sent = packets.flow("sender", flow)
    if sent is None or flow.protocol != "tcp":
        return None
    trips = round_trips(sent.acks)
    seconds = (trips["time_ns"].to_numpy() - epoch_ns(trial)) / 1e9
    return pd.DataFrame({"time_s": seconds, "rtt_ms": trips["rtt_ms"].to_numpy()})
