"""Checks of the recording: complete captures, punctual flows and samples, an idle machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator, Sequence

import numpy as np

from analysis.captures.tcp import PacketArrays
from analysis.trials.capacity import sending_ns
from analysis.trials.packets import capture_interface, epoch_ns
from analysis.trials.samples import read_samples
from analysis.trials.series import Floats
from analysis.verdict.checks import (
    NOT_SAMPLED,
    Check,
    make_check,
    unknown,
)
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import FlowKind
from testbed.store.names import CPU_LOAD, PROCESS_TIMES
from testbed.store.records import FlowRecord, Record

MAY_END_EARLY = (FlowKind.VIDEO, FlowKind.WORKLOAD, FlowKind.COMMAND)
NAMED_FILES = 3  # of those that are damaged
BUSY_CORE = 0.95  # of a second: the rest of a second goes to the sampling itself


def no_damage(evidence: Evidence) -> Iterator[Check]:
    """Say that all files are what the trial recorded: of another trial, none is read."""
    yield files(evidence.trial.record, ())


def files(record: Record, faults: Sequence[str]) -> Check:
    """Check that no file that the trial recorded was cut, changed or taken away since."""
    check = make_check("files", "trial", record.virtual_time, len(faults), 0)
    more = len(faults) - NAMED_FILES
    named = [*faults[:NAMED_FILES], *([f"{more} more files"] if more > 0 else [])]
    return dataclasses.replace(check, why="; ".join(named))


def captures(evidence: Evidence) -> Iterator[Check]:
    """Check that the captures lost nothing, and that the files hold everything."""
    for capture in evidence.trial.record.captures:
        name, virtual_time = capture.interface, evidence.virtual_time
        yield make_check("capture drops", name, virtual_time, capture.dropped, 0)
        if not capture.file:
            yield unknown("capture file", name, "the capture was dropped")
            continue
        packets = evidence.packets.read(evidence.trial.path / capture.file)
        note = "; ".join(packets.warnings)
        yield make_check(
            "capture file", name, virtual_time, packets.frames, capture.packets, note=note
        )


def times(evidence: Evidence) -> Iterator[Check]:
    """Check that flows started and stopped on time."""
    for flow in evidence.flows:
        first = first_packet_s(evidence, flow)
        started = flow.started_s if first is None else first
        yield make_check("start", flow.name, evidence.virtual_time, started, flow.planned_start_s)
        wanted = evidence.trial.scenario.flow(flow.name)
        early = flow.stopped_s < flow.planned_stop_s
        if wanted.bytes or (wanted.kind in MAY_END_EARLY and early):
            continue  # it ends when its bytes have arrived, or what it shows or transfers is over
        yield make_check(
            "stop", flow.name, evidence.virtual_time, flow.stopped_s, flow.planned_stop_s
        )


def first_packet_s(evidence: Evidence, flow: FlowRecord) -> float | None:
    """Return when a flow's first packet left: its SYN, or what a video's viewer sends first.

    That of a TCP flow that sent nothing is its end. None for a paced UDP flow, which begins with a
    gap; for a flow that starts at the bottleneck, since it is captured behind that queue, in which
    its SYN waits for other flows or is dropped; and for a program, which connects when it likes.
    """
    kind = evidence.trial.scenario.flow(flow.name).kind
    if evidence.packets.starts_at_bottleneck(flow.name) or kind is FlowKind.COMMAND:
        return None
    if kind is FlowKind.VIDEO:
        viewer = evidence.packets.part("receiver", flow)
        if viewer is None or not len(viewer.acks):
            return None
        return _sending_since_s(evidence, "receiver", flow, viewer.acks)
    sent = evidence.packets.part("sender", flow) if flow.protocol == "tcp" else None
    if sent is not None and not len(sent.data):
        return flow.stopped_s
    segments = evidence.packets.connections(flow) if flow.protocol == "tcp" else None
    if not segments or sent is None:
        return None
    return _sending_since_s(evidence, "sender", flow, sent.data)


def _sending_since_s(
    evidence: Evidence, role: str, flow: FlowRecord, packets: PacketArrays
) -> float:
    """Return when the first of a host's packets left, less the time that its own link took."""
    left_ns, length = (packets[name][:1].astype(np.int64) for name in ("time_ns", "length"))
    interface = capture_interface(evidence.trial, role, flow)
    for queue in evidence.trial.record.queues:
        if queue.interface == interface:
            left_ns = left_ns - sending_ns(evidence.trial, queue, left_ns, length)
    return float(left_ns[0] - epoch_ns(evidence.trial)) / 1e9


def sampling(evidence: Evidence) -> Iterator[Check]:
    """Check that samples were taken at their interval, and to the end of each flow."""
    queues, sockets = evidence.samples.queues, evidence.samples.sockets
    name, samples = ("all sockets", sockets) if queues is None else ("queues", queues)
    stops = [flow.stopped_s for flow in evidence.flows]
    if not evidence.trial.scenario.sample_interval_ms or samples is None or not stops:
        yield unknown("sampling", name, NOT_SAMPLED)
        return
    places = [0] * len(samples) if queues is None else queues["interface"]
    each_s = [np.unique(times) for _, times in samples["time_s"].groupby(places)]
    last_s = max(stops)
    gaps = [np.diff(np.append(times[times <= last_s + 1e-6], last_s)) for times in each_s]
    yield _longest_gap(evidence, name, np.concatenate(gaps))
    if sockets is not None:
        times_of = {str(name): np.unique(rows) for name, rows in sockets.groupby("flow")["time_s"]}
        flows = list(_sampled(evidence, times_of))
        ends_s = [each.stopped_s - times_of[each.name][-1] for each in flows]
        yield _longest_gap(evidence, "sockets to their flows' end", np.array(ends_s))
        gaps_s = [np.diff(times_of[each.name]).max(initial=0.0) for each in flows]
        yield _longest_gap(evidence, "sockets", np.array(gaps_s))


def _sampled(evidence: Evidence, names: Container[object]) -> Iterator[FlowRecord]:
    """Yield the flows with samples whose connections last as long as they do."""
    for flow in evidence.flows:
        if flow.name in names and evidence.trial.scenario.flow(flow.name).kind is FlowKind.TCP:
            yield flow


def _longest_gap(evidence: Evidence, name: str, gaps_s: Floats) -> Check:
    interval_ms = evidence.trial.scenario.sample_interval_ms
    longest_ms = float(gaps_s.max(initial=0)) * 1e3
    off = max(0.0, longest_ms - interval_ms)
    virtual_time = evidence.virtual_time
    return make_check("sampling", name, virtual_time, longest_ms, interval_ms, deviation=off)


def machine(evidence: Evidence) -> Iterator[Check]:
    """Check, in real time, that the machine was not too busy for the trial."""
    if evidence.virtual_time:
        return
    load = read_samples(evidence.trial, CPU_LOAD)
    if load is None:
        for name in ("cpu", "softirq", "steal"):
            yield unknown(name, "host", NOT_SAMPLED)
    else:
        busy = float((load["busiest"] >= BUSY_CORE).mean())
        yield make_check("cpu", "host", evidence.virtual_time, busy, 0)
        for name in ("softirq", "steal"):
            yield make_check(name, "host", evidence.virtual_time, float(load[name].mean()), 0)
    yield from _waits(evidence)


def _waits(evidence: Evidence) -> Iterator[Check]:
    """Check the mean wait for a core, per time slice, of the process that waited longest."""
    processes = read_samples(evidence.trial, PROCESS_TIMES)
    if processes is None:
        yield unknown("scheduling delay", "processes", NOT_SAMPLED)
        return
    waits_ms = (1e3 * processes["wait_s"] / processes["slices"].clip(lower=1)).to_numpy()
    worst = processes.iloc[int(waits_ms.argmax())]
    subject = f"{worst['name']} on {worst['node']}"
    yield make_check("scheduling delay", subject, evidence.virtual_time, float(waits_ms.max()), 0)
