"""Checks of calls: what their receivers read against the captures."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.trials.documents import CallReport, read_trial_document
from analysis.verdict.checks import NOT_CAPTURED, NOT_RECORDED, Check, compare, unknown
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import FlowKind
from testbed.store.names import report_file


def received(evidence: Evidence) -> Iterator[Check]:
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
        yield compare("goodput", flow.name, evidence.virtual_time, measured, expected, note=note)
