"""Checks of what flows do: videos, calls, the user's programs, and CBR with pauses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from analysis.trials.documents import (
    CallReport,
    FileSizes,
    PlayerReport,
    ProgramRecords,
    read_trial_document,
)
from analysis.trials.packets import PORTS, FlowTables, measured_interval
from analysis.trials.tcp_stream import delivered_bytes
from analysis.trials.video import loads, read_playback, read_sizes
from analysis.verdict.checks import (
    NOT_CAPTURED,
    NOT_RECORDED,
    Check,
    make_check,
    same,
    unknown,
    unverified,
)
from analysis.verdict.evidence import Evidence
from analysis.verdict.sender_queue import own_queue_ns
from testbed.errors import printable
from testbed.machine import safe_files
from testbed.scenario.model import FlowKind
from testbed.store.names import errors_file, programs_file, report_file
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, ProgramRecord

NO_PLAYER_REPORT = "the player left no report"
CONNECTION_ENDS = ["src", "dst", *PORTS]
LAST_BYTES = 2000  # of a program's stderr, with its last line
MAX_LINE = 200  # of it in a note
MIN_MEASURED_PACKETS, MIN_MEASURED_S = 100, 1.0  # of a flow's measured interval, without a note
DNS_PORT = 53
LATE_TIMER_NS = 20_000_000  # of a busy machine


def videos(evidence: Evidence) -> Iterator[Check]:
    """Check that videos played as configured, each file complete, each byte in a packet."""
    for flow in evidence.flows:
        wanted = evidence.trial.scenario.flow(flow.name)
        if wanted.kind is not FlowKind.VIDEO or wanted.video is None:
            continue
        playback = read_playback(evidence.trial, flow.name)
        sizes = read_sizes(evidence.trial, flow.name)
        if playback is None or sizes is None:
            for name in ("video", "video bytes", "video capture"):
                yield unverified(name, flow.name, NO_PLAYER_REPORT)
            continue
        expected = f"{wanted.video.transport} {wanted.video.rule}"
        yield same("video", flow.name, f"{playback['transport']} {playback['rule']}", expected)
        yield _file_sizes(evidence, flow.name, playback, sizes)
        yield _player_bytes(evidence, flow, playback)


def _file_sizes(evidence: Evidence, flow: str, playback: PlayerReport, sizes: FileSizes) -> Check:
    """Check that a file is as long as at the server; one still in transfer, no longer."""
    came = expected = off = 0
    for load in loads(playback):
        size = sizes.get(load["path"], 0)
        complete = load["last_byte_s"] is not None
        due = size if complete else min(load["bytes"], size)
        came, expected, off = came + load["bytes"], expected + due, off + abs(load["bytes"] - due)
    return make_check("video bytes", flow, evidence.virtual_time, came, expected, deviation=off)


def _player_bytes(evidence: Evidence, flow: FlowRecord, playback: PlayerReport) -> Check:
    """Check that the player's bytes arrived in packets, which also hold headers and TLS."""
    packets = evidence.packets.flow("receiver", flow)
    if packets is None:
        return unknown("video capture", flow.name, NOT_CAPTURED)
    came = sum(load["bytes"] for load in loads(playback))
    payload = _payload(packets, flow.protocol)
    over = max(0, came - payload)
    return make_check(
        "video capture", flow.name, evidence.virtual_time, came, payload, deviation=over
    )


def _payload(packets: FlowTables, protocol: str) -> int:
    if protocol == "udp":
        return int(packets.data["payload"].sum())
    delivered = delivered_bytes(packets.data)
    return int(delivered[-1]) if len(delivered) else 0


def programs(evidence: Evidence) -> Iterator[Check]:
    """Check how programs ended."""
    for flow in evidence.flows:
        if evidence.trial.scenario.flow(flow.name).command is None:
            continue
        roles = read_trial_document(evidence.trial, programs_file(flow.name), ProgramRecords)
        if roles is None:
            yield unverified("program", flow.name, NOT_RECORDED)
        else:
            for role, program in roles.items():
                subject = f"{flow.name} {role}"
                last_words = _last_words(evidence.trial, errors_file(flow.name, role))
                yield _exit_status(evidence, subject, program, last_words)


def _last_words(trial: Trial, name: str) -> str:
    """Return the last line that a program wrote to stderr, with its file; empty if none."""
    path = trial.file(name)
    if path is None:
        return ""
    lines = safe_files.tail(path, LAST_BYTES).split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {printable(last[:MAX_LINE])} ({name})" if last else ""


def _exit_status(
    evidence: Evidence, subject: str, program: ProgramRecord, last_words: str
) -> Check:
    """Check a program's exit status; one that the trial ended has none of its own."""
    status = 0 if program.was_ended else program.status
    note = f"{subject} ended with status {program.status}{last_words}" if status else ""
    if program.early:
        note = f"{note or f'{subject} ended'} before the flow did"
    off = int(bool(status) or program.early)
    return make_check(
        "program", subject, evidence.virtual_time, status, 0, deviation=off, note=note
    )


def other_connections(evidence: Evidence) -> Iterator[Check]:
    """Count the connections in captures, of TCP and of UDP, that belong to no flow."""
    flows = {flow.name: flow for flow in evidence.flows}
    captures = [each for each in evidence.trial.record.captures if each.file]
    if not captures:
        yield unknown("other connections", "captures", NOT_CAPTURED)
        return
    seen: dict[frozenset[tuple[str, int]], str] = {}
    for capture in captures:
        path = evidence.trial.path / capture.file
        strange = np.ones(len(evidence.packets.read(path).part), dtype=np.bool_)
        names = [role.partition(":")[2] for role in capture.roles]
        for name in dict.fromkeys([*(each for each in names if each in flows), *flows]):
            if not strange.any():
                break
            packets = evidence.packets.part_at(path, flows[name])
            strange[packets.data.index] = strange[packets.acks.index] = False
        if not strange.any():
            continue
        others = evidence.packets.read(path).rows.loc[strange, CONNECTION_ENDS].drop_duplicates()
        for src, dst, *ports in others.to_numpy():
            ends = frozenset(zip((str(src), str(dst)), map(int, ports), strict=True))
            note = f"from port {ports[0]} to {ports[1]}, at {capture.interface}"
            if ports[1] == DNS_PORT:
                note = f"{_host(evidence, str(src))} asked for a name (DNS): docs/faq.md"
            seen.setdefault(ends, note)
    note = next(iter(seen.values()), "")
    virtual = evidence.virtual_time
    yield make_check("other connections", "captures", virtual, len(seen), 0, note=note)


def _host(evidence: Evidence, address: str) -> str:
    """Return the name of the host whose address it is, if a flow begins or ends there."""
    for flow in evidence.flows:
        wanted = evidence.trial.scenario.flow(flow.name)
        if address in (flow.src_address, flow.dst_address):
            return wanted.src if address == flow.src_address else wanted.dst
    return address


def few_packets(evidence: Evidence) -> Iterator[Check]:
    """Note flows of which hardly anything was measured."""
    for flow in evidence.flows:
        captured = evidence.packets.part("sender", flow)
        if captured is None:
            continue
        interval = measured_interval(evidence.trial, flow)
        sent = int(
            (interval.holds(captured.data["time_ns"]) & (captured.data["payload"] > 0)).sum()
        )
        if sent < MIN_MEASURED_PACKETS or interval.seconds < MIN_MEASURED_S:
            note = f"{sent} packets with data in {interval.seconds:g} s"
            yield make_check(
                "few packets",
                flow.name,
                evidence.virtual_time,
                sent,
                MIN_MEASURED_PACKETS,
                note=note,
            )


def pauses(evidence: Evidence) -> Iterator[Check]:
    """Check that CBR flows that are on and off by turns send nothing while they are off."""
    for flow in evidence.flows:
        wanted = evidence.trial.scenario.flow(flow.name)
        if wanted.on_s is None or wanted.off_s is None:
            continue
        packets = evidence.packets.flow("sender", flow)
        if packets is None or not len(packets.data):
            yield unknown("pauses", flow.name, NOT_CAPTURED)
            continue
        times_ns = packets.data["time_ns"].to_numpy()
        late_ns = own_queue_ns(evidence, flow) + (1000 if evidence.virtual_time else LATE_TIMER_NS)
        on_ns, turn_ns = wanted.on_s * 1e9, (wanted.on_s + wanted.off_s) * 1e9
        in_pauses = int(((times_ns - times_ns[0]) % round(turn_ns) >= on_ns + late_ns).sum())
        yield make_check("pauses", flow.name, evidence.virtual_time, in_pauses, 0)


def calls(evidence: Evidence) -> Iterator[Check]:
    """Check that a call's receiver read every byte that came to its host."""
    for flow in evidence.flows:
        if evidence.trial.scenario.flow(flow.name).kind is not FlowKind.CALL:
            continue
        report = read_trial_document(evidence.trial, report_file(flow.name, "server"), CallReport)
        packets = evidence.packets.part("receiver", flow)
        if report is None or packets is None:
            yield unknown("goodput", flow.name, NOT_CAPTURED if report else NOT_RECORDED)
            continue
        seconds = flow.stopped_s - flow.started_s
        read, captured = report["bytes"], int(packets.data["payload"].sum())
        note = f"{read} bytes by its receiver, {captured} in the capture" * (read != captured)
        measured, expected = (size * 8e-6 / seconds for size in (read, captured))
        yield make_check("goodput", flow.name, evidence.virtual_time, measured, expected, note=note)
