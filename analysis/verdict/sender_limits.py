"""Checks of what limited a TCP flow: the network, or one of its hosts' buffers."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.trials.limits import sender_limits
from analysis.trials.packets import measured_interval
from analysis.verdict.checks import NOT_SAMPLED, Check, compare, unknown
from analysis.verdict.evidence import Evidence
from testbed.store.records import FlowRecord

WINDOW_WAS_SET = "the scenario sets this window"


def limits(evidence: Evidence) -> Iterator[Check]:
    """Check that neither the receiver's window nor the send buffer limited TCP flows for long."""
    for flow in evidence.tcp:
        interval = measured_interval(evidence.trial, flow)
        found = sender_limits(evidence.trial, evidence.samples.flow(flow), interval)
        if found is None:
            yield unknown("receive window", flow.name, NOT_SAMPLED)
            yield unknown("send buffer", flow.name, NOT_SAMPLED)
            continue
        yield _receive_window(evidence, flow, found.receive_window)
        yield compare("send buffer", flow.name, evidence.virtual_time, found.send_buffer, 0)


def _receive_window(evidence: Evidence, flow: FlowRecord, share: float) -> Check:
    """Check how long the receiver's window limited a flow; one that the scenario sets may."""
    virtual = evidence.virtual_time
    if evidence.trial.scenario.flow(flow.name).window_bytes is None:
        return compare("receive window", flow.name, virtual, share, 0)
    note = WINDOW_WAS_SET if share else ""
    return compare("receive window", flow.name, virtual, share, 0, deviation=0, note=note)
