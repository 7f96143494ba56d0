"""Checks of the recording: whole captures, punctual flows and samples, a machine with time, and
programs and pauses as they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from analysis.trials.measures import PORTS
from analysis.trials.packets import epoch_ns
from analysis.trials.samples import read_samples
from analysis.verdict.checks import (
    NOT_CAPTURED,
    NOT_RECORDED,
    NOT_SAMPLED,
    Check,
    compare,
    unknown,
)
from analysis.verdict.evidence import Evidence
from analysis.verdict.sender_queue import own_queue_ns
from testbed.scenario.model import FlowKind
from testbed.store import LOAD, PROCESSES, FlowRecord, ProgramRecord, programs_file, read_json

MAY_END = (FlowKind.VIDEO, FlowKind.WORKLOAD, FlowKind.COMMAND)  # before their planned stop
LATE_NS = 20_000_000  # a timer of a busy machine
BUSY = 0.95  # of a core: the rest of a second goes to the sampling itself


def captures(evidence: Evidence) -> Iterator[Check]:
    """tcpdump lost nothing, and the files hold everything that it wrote."""
    for capture in evidence.trial.record.captures:
        name, virtual_time = capture.interface, evidence.virtual_time
        yield compare("capture drops", name, virtual_time, capture.dropped, 0)
        if not capture.file:
            yield unknown("capture file", name, "the capture was dropped")
            continue
        found = evidence.packets.read(evidence.trial.path / capture.file)
        note = "; ".join(found.warnings)
        yield compare("capture file", name, virtual_time, found.frames, capture.packets, note=note)


def times(evidence: Evidence) -> Iterator[Check]:
    """Flows started and stopped on time."""
    for flow in evidence.flows:
        first = _first_packet_s(evidence, flow)
        started = flow.started_s if first is None else first
        yield compare("start", flow.name, evidence.virtual_time, started, flow.planned_start_s)
        wanted = evidence.trial.scenario.flow(flow.name)
        early = flow.stopped_s < flow.planned_stop_s
        if wanted.bytes or (wanted.kind in MAY_END and early):
            continue  # it ends when its bytes have arrived, or what it shows or transfers is over
        yield compare("stop", flow.name, evidence.virtual_time, flow.stopped_s, flow.planned_stop_s)


def _first_packet_s(evidence: Evidence, flow: FlowRecord) -> float | None:
    """The departure of a TCP flow's SYN (its end, if it sent none), or of the first packet that a
    video's viewer sends; None for a paced UDP flow, which begins with a gap, and for a flow that
    starts at the bottleneck: it is captured behind that queue, in which its SYN waits for other
    flows or is dropped; nor for a program, which connects when it likes."""
    kind = evidence.trial.scenario.flow(flow.name).kind
    if evidence.packets.starts_at_bottleneck(flow.name) or kind is FlowKind.COMMAND:
        return None
    if kind is FlowKind.VIDEO:
        viewer = evidence.packets.flow("receiver", flow)
        if viewer is None or not len(viewer.acks):
            return None
        return float(viewer.acks["time_ns"].iloc[0] - epoch_ns(evidence.trial)) / 1e9
    sent = evidence.packets.flow("sender", flow) if flow.protocol == "tcp" else None
    if sent is not None and not len(sent.data):
        return flow.stopped_s
    segments = evidence.packets.connections(flow) if flow.protocol == "tcp" else None
    if not segments:
        return None
    return float(min(each.time_ns[0] for each in segments) - epoch_ns(evidence.trial)) / 1e9


def sampling(evidence: Evidence) -> Iterator[Check]:
    """Samples were taken at their interval while flows ran."""
    interval_ms = evidence.trial.scenario.sample_interval_ms
    name = "sockets" if evidence.samples.queues is None else "queues"
    samples = (
        evidence.samples.sockets if evidence.samples.queues is None else evidence.samples.queues
    )
    stops = [flow.stopped_s for flow in evidence.flows]
    if not interval_ms or samples is None or not stops:
        yield unknown("sampling", name, NOT_SAMPLED)
        return
    times_s = np.unique(samples["time_s"].to_numpy())
    gaps_ms = np.diff(times_s[times_s <= max(stops) + 1e-6]) * 1e3
    longest = float(gaps_ms.max()) if len(gaps_ms) else interval_ms
    off = max(0.0, longest - interval_ms)
    yield compare("sampling", name, evidence.virtual_time, longest, interval_ms, deviation=off)


def machine(evidence: Evidence) -> Iterator[Check]:
    """In real time, the machine was not too busy for the trial."""
    if evidence.virtual_time:
        return
    load = read_samples(evidence.trial, LOAD)
    if load is None:
        for name in ("cpu", "softirq", "steal"):
            yield unknown(name, "host", NOT_SAMPLED)
    else:
        busy = float((load["busiest"] >= BUSY).mean())
        yield compare("cpu", "host", evidence.virtual_time, busy, 0)
        for name in ("softirq", "steal"):
            yield compare(name, "host", evidence.virtual_time, float(load[name].mean()), 0)
    yield from _waits(evidence)


def _waits(evidence: Evidence) -> Iterator[Check]:
    """The trial's processes' mean wait for a core per time slice."""
    processes = read_samples(evidence.trial, PROCESSES)
    if processes is None:
        yield unknown("scheduling delay", "processes", NOT_SAMPLED)
        return
    waits_ms = (1e3 * processes["wait_s"] / processes["slices"].clip(lower=1)).to_numpy()
    worst = processes.iloc[int(waits_ms.argmax())]
    subject = f"{worst['name']} on {worst['node']}"
    yield compare("scheduling delay", subject, evidence.virtual_time, float(waits_ms.max()), 0)


def programs(evidence: Evidence) -> Iterator[Check]:
    """Every command flow's client and server, and what else its hosts said to each other."""
    for flow in evidence.flows:
        if evidence.trial.scenario.flow(flow.name).command is not None:
            yield from _ends(evidence, flow)
            yield _strangers(evidence, flow)


def _ends(evidence: Evidence, flow: FlowRecord) -> Iterator[Check]:
    found = read_json(evidence.trial.path, programs_file(flow.name))
    if not isinstance(found, dict):
        yield unknown("program", flow.name, NOT_RECORDED)
        return
    for role, data in found.items():
        yield _end(evidence, f"{flow.name} {role}", ProgramRecord.from_json(data))


def _end(evidence: Evidence, subject: str, program: ProgramRecord) -> Check:
    """A program that the trial ended has no status of its own, and a server is there to the end."""
    status = 0 if program.was_ended else program.status
    note = f"{subject} ended with status {program.status}" if status else ""
    if program.early:
        note = f"{note or f'{subject} ended'} before the flow did"
    off = int(bool(status) or program.early)
    return compare("program", subject, evidence.virtual_time, status, 0, deviation=off, note=note)


def _strangers(evidence: Evidence, flow: FlowRecord) -> Check:
    """Connections between the flow's hosts, at its sender's capture, that are no flow's."""
    capture = evidence.packets.capture("sender", flow.name)
    if capture is None:
        return unknown("other connections", flow.name, NOT_CAPTURED)
    rows = capture.rows[capture.rows["protocol"] == "tcp"]
    there = (rows["src"] == flow.src_address) & (rows["dst"] == flow.dst_address)
    ends = {flow.src_address, flow.dst_address}
    for each in evidence.tcp:
        if {each.src_address, each.dst_address} == ends:
            own = evidence.packets.flow("sender", each)
            captured = evidence.trial.capture(f"sender:{each.name}")
            if own is not None and captured == evidence.trial.capture(f"sender:{flow.name}"):
                there &= ~rows.index.isin(own.data.index) & ~rows.index.isin(own.acks.index)
    strange = rows.loc[there, PORTS].drop_duplicates()
    return compare(
        "other connections",
        flow.name,
        evidence.virtual_time,
        len(strange),
        0,
        note=_named(strange),
    )


def _named(strange: pd.DataFrame) -> str:
    """The first of them, by its ports."""
    first: Mapping[str, int] = dict(strange.iloc[0]) if len(strange) else {}
    return f"from port {first['src_port']} to {first['dst_port']}" if first else ""


def pauses(evidence: Evidence) -> Iterator[Check]:
    """CBR flows that are on and off by turns send nothing while they are off."""
    for flow in evidence.flows:
        wanted = evidence.trial.scenario.flow(flow.name)
        if wanted.on_s is None or wanted.off_s is None:
            continue
        found = evidence.packets.flow("sender", flow)
        if found is None or not len(found.data):
            yield unknown("pauses", flow.name, NOT_CAPTURED)
            continue
        times_ns = found.data["time_ns"].to_numpy()
        late_ns = own_queue_ns(evidence, flow) + (1000 if evidence.virtual_time else LATE_NS)
        on_ns, turn_ns = wanted.on_s * 1e9, (wanted.on_s + wanted.off_s) * 1e9
        strange = int(((times_ns - times_ns[0]) % round(turn_ns) >= on_ns + late_ns).sum())
        yield compare("pauses", flow.name, evidence.virtual_time, strange, 0)
