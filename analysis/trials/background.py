"""The background traffic of a trial: its load, losses, sessions and files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from testbed.store import (
    BACKGROUND,
    BACKGROUND_COUNTS,
    BACKGROUND_FLOW,
    Trial,
    read_json,
    report_file,
)


@dataclass(frozen=True)
class Load:
    """The background traffic in an interval: Mbit/s of Ethernet frames that arrived, their share of
    the bottleneck's rate, and the share of the packets that was lost."""

    mbit: float
    share: float
    loss_rate: float


@dataclass(frozen=True)
class Traffic:
    """A trial's background traffic; `sessions` has one row per session, `counts` the packets sent
    and delivered up to each time."""

    whole: Load
    sessions: pd.DataFrame
    counts: pd.DataFrame
    rate_mbit: float  # of the bottleneck

    def load(self, begin_s: float, end_s: float) -> Load:
        """The load of a part of the trial, by the counts nearest to its ends. Packets in flight at
        either end distort the loss rate slightly; over many round trips that is negligible."""
        times = self.counts["time_s"].to_numpy()
        first, last = (int(np.abs(times - each).argmin()) for each in (begin_s, end_s))
        span = self.counts.iloc[last] - self.counts.iloc[first]
        if not span["time_s"] > 0:
            return Load(0.0, 0.0, 0.0)
        mbit = float(span["delivered_bytes"] * 8e-6 / span["time_s"])
        sent = float(span["sent_packets"])
        lost = (sent - float(span["delivered_packets"])) / sent if sent else 0.0
        return Load(mbit, mbit / self.rate_mbit, lost)


def read_report(trial: Trial) -> dict[str, Any] | None:
    """The whole, and each session; None if the trial had no background traffic."""
    found: dict[str, Any] | None = read_json(trial.path, BACKGROUND)
    return found


def read_traffic(trial: Trial) -> Traffic | None:
    """The background traffic; None if the trial had none."""
    report = read_report(trial)
    if report is None:
        return None
    return Traffic(
        whole=Load(report["load_mbit"], report["share_of_link"], report["loss_rate"]),
        sessions=pd.DataFrame(report["sessions"]),
        counts=pd.read_csv(trial.path / BACKGROUND_COUNTS.file),
        rate_mbit=trial.scenario.topology.bottleneck.rate_mbit,
    )


def read_files(trial: Trial) -> pd.DataFrame:
    """Every file that was received whole: its session, the time of its request, its duration."""
    report = json.loads((trial.path / report_file(BACKGROUND_FLOW, "client")).read_text())
    rows = [
        (number, begun_ns / 1e9, took_ns / 1e9, size)
        for number, session in enumerate(report["sessions"])
        for begun_ns, took_ns, size in session["files"]
    ]
    return pd.DataFrame(rows, columns=["session", "begun_s", "took_s", "bytes"])
