"""The standard evaluations, in the order of the report."""

from __future__ import annotations

from experiments.evaluation import (
    aqm,
    buffer_sizing,
    cellular_traces,
    completion_times,
    convergence,
    harm,
    intra_protocol,
    latecomer,
    lossy_path,
    marks_and_drops,
    parking_lot,
    path_change,
    reordered_path,
    reverse_traffic,
    rtt_fairness,
)
from testbed.scenario.experiment import Experiment

EVALUATIONS: tuple[Experiment, ...] = (
    rtt_fairness.EXPERIMENT,
    buffer_sizing.EXPERIMENT,
    convergence.EXPERIMENT,
    latecomer.EXPERIMENT,
    intra_protocol.EXPERIMENT,
    harm.EXPERIMENT,
    parking_lot.EXPERIMENT,
    reverse_traffic.EXPERIMENT,
    completion_times.EXPERIMENT,
    lossy_path.EXPERIMENT,
    reordered_path.EXPERIMENT,
    cellular_traces.EXPERIMENT,
    path_change.EXPERIMENT,
    marks_and_drops.EXPERIMENT,
    aqm.EXPERIMENT,
)
