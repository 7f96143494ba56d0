"""Checks of a queue's own counters against the captures on both sides of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analysis.captures.tcp import CE
from analysis.trials.packets import epoch_ns
from analysis.trials.passage import Passage, crossings
from analysis.trials.samples import read_counters
from analysis.verdict.checks import (
    NO_ROW,
    NOT_CAPTURED,
    NOT_SAMPLED,
    Check,
    compare,
    unknown,
)
from analysis.verdict.evidence import Evidence
from testbed.scenario.queues import DISCIPLINES
from testbed.store import QueueRecord

SYN, ECE = 0x02, 0x40
LEAST_BYTES = 42  # of a frame: the headers of Ethernet, IP and UDP


def conservation(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """Every packet that entered the queue left it, was dropped or is still inside; and the queue's
    count of packets sent is the capture's."""
    name = queue.interface
    end = evidence.samples.queue_end(name)
    leaf = evidence.disciplines.leaves.get(name)
    if end is None and leaf is None:
        yield unknown("conservation", name, NOT_SAMPLED)
        return
    dropped = int(leaf["drops"] if end is None and leaf else end["drops"])  # type: ignore[index]
    inside = 0 if end is None else int(end["backlog_packets"])
    injected = evidence.injected.at_queue(queue)
    yield _balance(evidence, name, found, (dropped, inside, injected))
    if end is not None:
        yield from _sent(evidence, name, found, (int(end["sent_packets"]), int(end["sent_bytes"])))


def _balance(evidence: Evidence, name: str, found: Passage, counts: tuple[int, int, int]) -> Check:
    dropped, inside, injected = counts
    left, lost = len(found.left_ns), len(found.lost_ns)
    total = left + dropped + inside + injected
    off = abs(found.entered - total)
    if not found.complete:
        # packets of the router's own flows that met a full queue are in no capture
        off = max(0, lost - dropped - inside - injected)
    note = f"{left} left, {dropped} dropped, {inside} inside, {injected} lost as asked"
    if found.complete and found.strangers:
        off += found.strangers
        note += f", {found.strangers} left that never came"
    return compare(
        "conservation",
        name,
        evidence.virtual_time,
        found.entered,
        total,
        deviation=off,
        note=note if off else "",
    )


def _sent(
    evidence: Evidence, name: str, found: Passage, counted: tuple[int, int]
) -> Iterator[Check]:
    """Packets and their bytes; frames that are neither TCP nor UDP count, but belong to no flow.

    The captures may lack some of what left when they no longer are sure to be whole.
    """
    others = _other_frames(evidence, name)
    left, captured = len(found.left_ns), int(found.length.sum())
    off = max(0, abs(counted[0] - left) - others)
    note = f"{counted[1]} bytes counted, {captured} captured"
    if off and _came_late(evidence, name, counted[0] - left, counted[1] - captured):
        off = 0
    elif not off and not others and counted[1] != captured:
        off = 1  # as many packets, but not the same
    yield compare(
        "queue counters",
        name,
        evidence.virtual_time,
        counted[0],
        left,
        deviation=off,
        note=note if off else "",
    )


def _came_late(evidence: Evidence, name: str, packets: int, size: int) -> bool:
    """Whether the queue counts so many packets and bytes more after every capture was sure to be
    whole."""
    own = evidence.samples.queue(name)
    if own is None:
        return False
    sure_s = (evidence.sure_ns - epoch_ns(evidence.trial)) / 1e9
    counts = own[["sent_packets", "sent_bytes"]]
    until = counts[own["time_s"] <= sure_s]
    late = counts.iloc[-1] - (until.iloc[-1] if len(until) else 0)
    late_packets, late_size = (int(each) for each in late)
    return 0 < packets <= late_packets and LEAST_BYTES * packets <= size <= late_size


def _other_frames(evidence: Evidence, interface: str) -> int:
    for capture in evidence.trial.record.captures:
        if capture.interface == interface and capture.file:
            found = evidence.packets.read(evidence.trial.path / capture.file)
            return found.frames - len(found.rows)
    return 0


def marks(evidence: Evidence, queue: QueueRecord, _found: Passage) -> Iterator[Check]:
    """The queue's marks are the CEs that leave it, and there are none unless asked for."""
    if not queue.sampled:
        return
    name = queue.interface
    if queue.discipline not in DISCIPLINES:
        yield unknown("ECN", name, NO_ROW)
        return
    ce = 0
    for crossing in crossings(evidence.trial, evidence.packets, queue):
        ce += int((crossing.left["ecn"] == CE).sum())
        ce -= 0 if crossing.entered is None else int((crossing.entered["ecn"] == CE).sum())
    counted, spoilt = _counted_marks(evidence, queue)
    if counted is None:
        yield unknown("ECN", name, NOT_SAMPLED)
        return
    off = max(0, ce - counted, counted - spoilt - ce)
    note = f"up to {spoilt} marked packets found the queue full" if ce != counted else ""
    yield compare("ECN", name, evidence.virtual_time, ce, counted, deviation=off, note=note)


def _counted_marks(evidence: Evidence, queue: QueueRecord) -> tuple[int | None, int]:
    """The queue's count of marks, and how many of the marked packets it may have dropped."""
    end, leaf = (
        evidence.samples.queue_end(queue.interface),
        evidence.disciplines.leaves.get(queue.interface, {}),
    )
    marking = DISCIPLINES[queue.discipline].marking
    if marking and marking.counted_at is None and leaf:
        return sum(int(tin["ecn_mark"]) for tin in leaf["tins"]), 0
    if end is None:
        return None, 0
    return int(end["marks"]), int(leaf.get("pdrop", 0)) if marking and marking.may_drop else 0


def receivers(evidence: Evidence) -> Iterator[Check]:
    """The CEs in the receivers' captures are those that their kernels counted, and are echoed."""
    seen: dict[str, int] = {}
    known = True
    for flow in evidence.flows:
        found = evidence.packets.flow("receiver", flow)
        if found is None:
            known = False
            continue
        marked = found.data[found.data["ecn"] == CE]
        ce = len(marked)
        dst = evidence.trial.scenario.flow(flow.name).dst
        seen[dst] = seen.get(dst, 0) + ce
        if flow.protocol == "tcp":
            # DCTCP's SYN and ACKs can be marked too, but echoed are the marks of data alone
            data = int((marked["payload"] > 0).sum())
            yield _echo(evidence, flow.name, data, found.acks["flags"].to_numpy())
    for node, ce in seen.items():
        counters = read_counters(evidence.trial, node)
        if not counters or not known:
            yield unknown("ECN", node, NOT_SAMPLED if known else NOT_CAPTURED)
        else:
            yield compare("ECN", node, evidence.virtual_time, counters.get("IpExtInCEPkts", 0), ce)


def _echo(evidence: Evidence, flow: str, ce: int, flags: npt.NDArray[np.int64]) -> Check:
    """Acknowledgements carry ECE if CE arrived; how many depends on when CWR comes back."""
    echoes = int((((flags & ECE) > 0) & ((flags & SYN) == 0)).sum())
    off = 0 if (ce > 0) == (echoes > 0) else 1
    note = f"{ce} packets with CE arrived, {echoes} echoes went back" if off else ""
    return compare("ECN echo", flow, evidence.virtual_time, echoes, ce, deviation=off, note=note)
