"""iperf3's reports of a flow, read."""

from __future__ import annotations

from typing import Any

from analysis.trials.json_files import read_json
from testbed.store import FLOWS, FlowRecord, Trial


def read_report(trial: Trial, flow: FlowRecord, side: str) -> dict[str, Any] | None:
    """The report of iperf3's client or server; None if it left none."""
    return read_json(trial.path / FLOWS / f"{flow.name}.{side}.json")
