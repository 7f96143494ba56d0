"""The transfers of all workloads of a run, one row each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from analysis.metrics.axes import write_axes
from analysis.transfers.transfer_rows import cached_transfers, workloads
from analysis.trials.packets import TrialPackets
from analysis.verdict import verdict as fidelity
from testbed.machine.atomic import replace
from testbed.store import TRANSFERS_CSV, Status, Trial


def transfers_of(trials: Iterable[Trial]) -> pd.DataFrame:
    """The rows of all trials that ran and have workloads, with what tells the trials apart."""
    ran = (trial for trial in trials if trial.record.status is Status.OK)
    parts = [_of_trial(trial) for trial in ran if workloads(trial)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def write_transfers(run: Path, trials: Iterable[Trial]) -> pd.DataFrame:
    """The same, kept with their run as a table."""
    frame = transfers_of(trials)
    if len(frame):
        counts = {name: frame[name].astype("Int64") for name in ("retransmissions",)}
        table = frame.assign(**counts)
        replace(
            run / TRANSFERS_CSV, lambda path: table.to_csv(path, index=False, float_format="%.9g")
        )
    return frame


def _of_trial(trial: Trial) -> pd.DataFrame:
    scenario, packets = trial.scenario, TrialPackets(trial)
    verdict = fidelity.cached_verdict(trial, packets)
    keys: dict[str, str | int] = {
        "trial": trial.path.name,
        "verdict": str(verdict.verdict) if verdict else "",
        "label": scenario.label,
        "axes": write_axes(scenario.axes),
        "seed": scenario.seed,
    }
    frame = cached_transfers(trial, packets)
    for place, (name, value) in enumerate(keys.items()):
        frame.insert(place, name, value)
    return frame
