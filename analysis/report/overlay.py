"""The data from which the page lays any two trials over each other.

They are settings with their trials, the metrics of every flow, and each trial's series, in files
beside the page or within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.figures.cases import text
from analysis.metrics.metric_rows import AXIS, INVALID, joined_by_trial
from analysis.report.listing import METRIC_HEADS, METRIC_UNITS
from analysis.report.page_plot import script_json
from analysis.results.experiment_results import ExperimentResults
from analysis.results.page_series import Json
from analysis.statistics.intervals import student_quantile
from analysis.statistics.tolerances import TOLERANCES
from testbed.machine.atomic import replace_all
from testbed.machine.safe_files import make_folder

INTERPOLATION_STEPS = 512  # of 1 / degrees of freedom, between which the page interpolates
OTHER_HEADS = {
    "rtt_p95_ms": "RTT, 95th percentile",
    "timeouts": "timeouts",
    "jain": "Jain's index",
}


@dataclass(frozen=True)
class Overlay:
    """The choice and the metrics as JSON, and the series that are within the page, by trial."""

    choice: str = field(repr=False)
    series: Mapping[int, str] = field(repr=False)


def overlay(all_results: Sequence[ExperimentResults], folder: Path | None) -> Overlay | None:
    """Return what the page's own plot shows; None if fewer than two flows ran.

    `folder` takes the series, a file for each trial; without one they are within the page.
    """
    settings: list[Json] = []
    values: dict[str, Json] = {}
    for results in all_results:
        settings += settings_of(results)
        values |= _values(results)
    if sum(map(len, values.values())) < 2:
        return None
    choice = {
        "folder": folder.name if folder else "",
        "metrics": [
            {"head": METRIC_HEADS.get(name) or OTHER_HEADS[name], "unit": METRIC_UNITS[name]}
            for name in TOLERANCES
        ],
        "settings": settings,
        "values": values,
        "quantiles": _quantiles(),
    }
    series = {n: text for results in all_results for n, text in results.plotted.items()}
    if folder is None:
        return Overlay(script_json(choice), series)
    make_folder(folder)
    scripts = {f"t{n}.js": f'testbedSeries({n},"{text}");\n' for n, text in series.items()}
    replace_all(folder, scripts)
    return Overlay(script_json(choice), {})


def settings_of(results: ExperimentResults) -> list[Json]:
    """Return the settings to choose from, each with its flows and a trial for each seed."""
    rows = results.rows[results.rows["status"] == "ok"]
    # a flow's setting leaves its own variant out
    repeats = joined_by_trial(rows["trial"], rows["setting"] + " " + rows["variant"])
    axes = results.varied(rows)
    groups = rows.groupby(repeats, sort=False)
    return [_setting(group, axes, results.key) for _, group in groups]


def _setting(rows: pd.DataFrame, axes: Sequence[str], part: str) -> Json:
    first = rows.iloc[0]
    known = [(name, first[AXIS + name]) for name in axes if pd.notna(first[AXIS + name])]
    assignments = ", ".join(f"{name.replace('_', ' ')} {text(value)}" for name, value in known)
    trials = rows.drop_duplicates("trial")[["number", "seed", "verdict"]].to_numpy().tolist()
    return {
        "part": part,
        "name": assignments or str(first["label"]) or str(first["experiment"]),
        "flows": list(dict.fromkeys(map(str, rows["flow"]))),
        "trials": [[int(n), int(seed), int(verdict == INVALID)] for n, seed, verdict in trials],
    }


def _values(results: ExperimentResults) -> dict[str, Json]:
    """Return the metrics that `testbed compare` compares, by the trial's number and the flow."""
    values: dict[str, Json] = {}
    rows = results.rows[results.rows["status"] == "ok"]
    table = rows[["number", "flow", *TOLERANCES]].to_numpy().tolist()
    for number, flow, *numbers in table:
        values.setdefault(str(int(number)), {})[str(flow)] = [_known(each) for each in numbers]
    return values


def _known(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _quantiles() -> list[float]:
    """Student's, from endless degrees of freedom to one, in equal steps of their inverse."""
    freedoms = [1e9, *(INTERPOLATION_STEPS / np.arange(1, INTERPOLATION_STEPS + 1))]
    return [float(f"{student_quantile(float(each)):.6g}") for each in freedoms]
