"""What the page lays two trials over each other from: settings with their trials, the metrics of
every flow, and each trial's series, in files beside the page or within it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.figures.cases import text
from analysis.metrics.metric_rows import AXIS, INVALID
from analysis.report.listing import HEADS, UNITS
from analysis.report.overlay_series import trial_text
from analysis.report.page_plot import Json, script_json
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import student_quantile
from analysis.statistics.tolerances import TOLERANCES
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder
from testbed.store import Status, Trial

STEPS = 512  # of 1 / degrees of freedom, between which the page interpolates
OTHER_HEADS = {
    "rtt_p95_ms": "RTT, 95th percentile",
    "timeouts": "timeouts",
    "jain": "Jain's index",
}


@dataclass(frozen=True)
class Overlay:
    """The choice and the metrics as JSON; the series by the trial's number if they are within
    the page."""

    choice: str = field(repr=False)
    series: Mapping[int, str] = field(repr=False)


def overlay(all_results: Iterable[ExperimentResults], folder: Path | None) -> Overlay | None:
    """`folder` takes the series, a file for each trial; without one they are within the page.

    None if fewer than two flows ran.
    """
    settings: list[Json] = []
    values: dict[str, Json] = {}
    series: dict[int, str] = {}
    for results in all_results:
        settings += _settings(results)
        values |= _values(results)
        for number, trial in _ran(results):
            series[number] = trial_text(trial)
    if sum(map(len, values.values())) < 2:
        return None
    choice = {
        "folder": folder.name if folder else "",
        "metrics": [
            {"head": HEADS.get(name) or OTHER_HEADS[name], "unit": UNITS[name]}
            for name in TOLERANCES
        ],
        "settings": settings,
        "values": values,
        "quantiles": _quantiles(),
    }
    if folder is None:
        return Overlay(script_json(choice), series)
    make_folder(folder)
    for number, packed in series.items():
        _write(folder / f"t{number}.js", f'testbedSeries({number},"{packed}");\n')
    return Overlay(script_json(choice), {})


def _write(path: Path, script: str) -> None:
    replace(path, lambda own: own.write_text(script, encoding="utf-8"))


def _ran(results: ExperimentResults) -> Iterator[tuple[int, Trial]]:
    numbers = dict(zip(results.rows["trial"], results.rows["number"], strict=True))
    for trial in results.trials:
        if trial.record.status is Status.OK:
            yield int(numbers[trial.path.name]), trial


def _settings(results: ExperimentResults) -> list[Json]:
    """Trials that differ in nothing but the seed, with the flows that they have."""
    rows = results.rows[results.rows["status"] == "ok"]
    whole = rows.groupby("trial", sort=False)["setting"].transform("+".join)  # of all its flows
    axes = results.varied(rows)
    return [_setting(own, axes, results.key) for _, own in rows.groupby(whole, sort=False)]


def _setting(rows: pd.DataFrame, axes: Sequence[str], part: str) -> Json:
    first = rows.iloc[0]
    known = [(name, first[AXIS + name]) for name in axes if pd.notna(first[AXIS + name])]
    words = ", ".join(f"{name.replace('_', ' ')} {text(value)}" for name, value in known)
    trials = rows.drop_duplicates("trial")[["number", "seed", "verdict"]].to_numpy().tolist()
    return {
        "part": part,
        "name": words or str(first["label"]) or str(first["experiment"]),
        "flows": list(dict.fromkeys(map(str, rows["flow"]))),
        "trials": [[int(n), int(seed), int(verdict == INVALID)] for n, seed, verdict in trials],
    }


def _values(results: ExperimentResults) -> dict[str, Json]:
    """The metrics that `testbed compare` compares, by the trial's number and the flow."""
    found: dict[str, Json] = {}
    rows = results.rows[results.rows["status"] == "ok"]
    table = rows[["number", "flow", *TOLERANCES]].to_numpy().tolist()
    for number, flow, *numbers in table:
        found.setdefault(str(int(number)), {})[str(flow)] = [_known(each) for each in numbers]
    return found


def _known(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _quantiles() -> list[float]:
    """Student's, from endless degrees of freedom to one, in equal steps of their inverse."""
    freedoms = [1e9, *(STEPS / np.arange(1, STEPS + 1))]
    return [float(f"{student_quantile(float(each)):.6g}") for each in freedoms]
