"""iperf3's reports of a flow, read."""

from __future__ import annotations

from typing import Any

from testbed.store import FlowRecord, Trial, read_json, report_file


def read_report(trial: Trial, flow: FlowRecord, side: str) -> dict[str, Any] | None:
    """The report of iperf3's client or server; None if it left none."""
    found: dict[str, Any] | None = read_json(trial.path, report_file(flow.name, side))
    return found
