"""Losses that were asked for: where they happened, and whether captures lack exactly those."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.trials.evidence import Evidence
from analysis.trials.pairing import differences
from analysis.verdict.checks import NOT_CAPTURED, Check, compare, unknown
from testbed.store import FlowRecord

CHECK = "losses by chance"


@dataclass(frozen=True)
class _Stretch:
    """The two captures of a flow nearest to its dropper on either side."""

    before: str  # roles
    behind: str


def _stretch(evidence: Evidence, flow: FlowRecord) -> _Stretch | None:
    """None where one of them is missing. A capture on the way out comes behind the dropper."""
    asked = evidence.asked[flow.name]
    out = evidence.interface("bottleneck-out", flow)
    there = out == asked.interface
    behind = "bottleneck-out" if there else "receiver"
    for role in (*(() if there else ("bottleneck-out",)), "bottleneck-in", "sender"):
        name = evidence.interface(role, flow)
        if name and evidence.interface(behind, flow):
            return _Stretch(role, behind)
    return None


def by_chance(evidence: Evidence) -> Iterator[Check]:
    """What is missing behind each dropper is what it counted, but for what queues dropped; and no
    segment came when it had no dice left."""
    for flow in evidence.flows:
        asked = evidence.asked.get(flow.name)
        if asked is None or not asked.interface:
            continue
        note = f"{asked.undecided} segments passed when the runs had run out"
        if asked.undecided:
            name = f"{flow.name} behind its last run"
            yield compare(CHECK, name, evidence.engine, asked.undecided, 0, note=note)
        yield _missing(evidence, flow)


def _missing(evidence: Evidence, flow: FlowRecord) -> Check:
    stretch, asked = _stretch(evidence, flow), evidence.asked[flow.name]
    one = evidence.at(stretch.before, flow) if stretch else None
    other = evidence.at(stretch.behind, flow) if stretch else None
    if stretch is None or one is None or other is None:
        return unknown(CHECK, flow.name, NOT_CAPTURED)
    missing, _ = differences(one.data, other.data)
    queues = _dropped_by_queues(evidence, stretch, asked.interface)
    off = max(0, asked.dropped - missing, missing - asked.dropped - queues)
    note = f"between {stretch.before} and {stretch.behind}, where queues dropped {queues}"
    return compare(
        CHECK,
        flow.name,
        evidence.engine,
        missing,
        asked.dropped,
        deviation=off,
        note=note if off or queues else "",
    )


def _dropped_by_queues(evidence: Evidence, stretch: _Stretch, interface: str) -> int:
    """Of whatever flow: behind the bottleneck only the access link's own queue."""
    counts = {name: int(leaf["drops"]) for name, leaf in evidence.leaves.items()}
    if stretch.before == "bottleneck-out":
        return counts.get(interface, 0)
    return sum(counts.values())
