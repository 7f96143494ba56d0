"""The check of losses by chance: exactly those are missing from the captures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.trials.injected import Injected
from analysis.trials.pairing import differences
from analysis.trials.placement import BEFORE, BEHIND, capture_interface, queue_roles
from analysis.verdict.checks import NOT_CAPTURED, Check, compare, unknown
from analysis.verdict.evidence import Evidence
from testbed.store import FlowRecord

CHECK = "losses by chance"


@dataclass(frozen=True)
class _Stretch:
    """The roles of the two captures of a flow nearest to its dropper, one on each side."""

    before: str
    behind: str


def _stretch(evidence: Evidence, flow: FlowRecord, dropper: Injected) -> _Stretch | None:
    """The captures around a flow's dropper; None if one is missing. A capture on the way out comes
    behind the dropper."""
    roles = queue_roles(evidence.trial, flow)
    entered, left = (f"{roles[-1]}{side}" if roles else "" for side in (BEFORE, BEHIND))
    leaving = capture_interface(evidence.trial, left, flow) == dropper.interface
    behind = left if leaving else "receiver"
    for role in (*(() if leaving else (left,)), entered, "sender"):
        name = capture_interface(evidence.trial, role, flow)
        if name and capture_interface(evidence.trial, behind, flow):
            return _Stretch(role, behind)
    return None


def by_chance(evidence: Evidence) -> Iterator[Check]:
    """Behind each dropper exactly the segments that it counted are missing, apart from drops by
    queues; and no segment came after its random numbers had run out."""
    for flow in evidence.flows:
        dropper = evidence.injected.droppers.get(flow.name)
        if dropper is None or not dropper.interface:
            continue
        passed = dropper.undecided
        if passed:
            note = f"{passed} segments passed when the runs had run out"
            name = f"{flow.name} behind its last run"
            yield compare(CHECK, name, evidence.virtual_time, passed, 0, note=note)
        yield _missing(evidence, flow, dropper)


def _missing(evidence: Evidence, flow: FlowRecord, dropper: Injected) -> Check:
    stretch = _stretch(evidence, flow, dropper)
    one = evidence.packets.flow(stretch.before, flow) if stretch else None
    other = evidence.packets.flow(stretch.behind, flow) if stretch else None
    if stretch is None or one is None or other is None:
        return unknown(CHECK, flow.name, NOT_CAPTURED)
    missing, _ = differences(one.data, other.data)
    queues = _dropped_by_queues(evidence, stretch, dropper.interface)
    off = max(0, dropper.dropped - missing, missing - dropper.dropped - queues)
    note = f"between {stretch.before} and {stretch.behind}, where queues dropped {queues}"
    return compare(
        CHECK,
        flow.name,
        evidence.virtual_time,
        missing,
        dropper.dropped,
        deviation=off,
        note=note if off or queues else "",
    )


def _dropped_by_queues(evidence: Evidence, stretch: _Stretch, interface: str) -> int:
    """Drops of any flow by the queues in between: behind the bottleneck, only by the access link's
    own."""
    counts = evidence.disciplines.drops()
    if stretch.before.endswith(BEHIND):
        return counts.get(interface, 0)
    return sum(counts.values())
