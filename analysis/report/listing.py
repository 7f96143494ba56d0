"""The page's tables of cells (one row per set of repeats), of trials, and of doubtful trials."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from analysis.figures.sheet import Cell, Head, Sheet, mean_cell, number_cell
from analysis.metrics.columns import ALL_METRICS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.summary import sum_up
from testbed.store.names import CAPTURES_FOLDER, FIGURES, TRIAL_PAGE
from testbed.store.reading import Trial

LISTED_METRICS = (
    "throughput_mbps",
    "goodput_mbps",
    "drop_rate",
    "rtt_mean_ms",
    "owd_mean_ms",
    "retransmitted",
    "share",
    "startup_s",
    "loaded_s",
    "stalls",
    "stall_s",
)
METRIC_UNITS = {metric.name: metric.unit for metric in ALL_METRICS}
METRIC_DEFINITIONS = {metric.name: metric.definition for metric in ALL_METRICS}
METRIC_HEADS = {
    "throughput_mbps": "throughput",
    "goodput_mbps": "goodput",
    "drop_rate": "drop rate",
    "rtt_mean_ms": "RTT, mean",
    "owd_mean_ms": "one-way delay, mean",
    "retransmitted": "retransmitted",
    "share": "share",
    "startup_s": "playback starts",
    "loaded_s": "video loaded",
    "stalls": "stalls",
    "stall_s": "time stalled",
}
COUNTED = Head("n", hint="trials that count", number=True)


@dataclass(frozen=True)
class Listed:
    """A trial's row, with links to its files."""

    number: int
    name: str
    axes: str
    seed: int
    status: str
    verdict: str
    why: str
    rates: str
    captures: str = ""
    record: str = ""
    page: str = ""


def cells(results: ExperimentResults) -> Sheet:
    """Mean ± half of the 95 % interval of each measure, one row per set of repeats."""
    summary = sum_up(results.good)
    measures = [name for name in LISTED_METRICS if results.good[name].notna().any()]
    heads = [*(Head(key.name.replace("_", " ")) for key in summary.keys), COUNTED]
    heads += [Head(METRIC_HEADS[m], METRIC_UNITS[m], METRIC_DEFINITIONS[m], True) for m in measures]
    lines = []
    for line in summary.cells:
        cells = [Cell(text, text) for text in line.key_values(summary.keys)]
        cells.append(number_cell(line.rows["trial"].nunique()))
        cells += [mean_cell(line.rows[m]) for m in measures]
        lines.append(tuple(cells))
    return Sheet(tuple(heads), tuple(lines))


def trials(results: ExperimentResults, page: Path | None) -> Iterator[Listed]:
    """Every trial, with links that hold as long as page and results move together.

    Without a page's place there are none: it goes elsewhere alone.
    """
    rates = _rates(results.rows)
    first = results.rows.drop_duplicates("trial").set_index("trial")
    facts = first[["number", "seed", "axes", "verdict", "why"]].to_dict("index")
    page_folder = page and page.resolve().parent
    real = {folder: folder.resolve() for folder in {t.path.parent for t in results.trials}}
    for trial in results.trials:
        name = trial.path.name
        fact = facts[name]
        status = str(trial.record.status)
        yield Listed(
            int(fact["number"]),
            name,
            str(fact["axes"]),
            int(fact["seed"]),
            status,
            str(fact["verdict"]),
            str(fact["why"]) or trial.record.reason,
            rates.get(name, ""),
            *(_links(trial, real[trial.path.parent], page_folder) if page_folder else ()),
        )


def _rates(rows: pd.DataFrame) -> dict[str, str]:
    """`tcp 0.96, cbr 2.1` by trial."""
    known = rows[rows["throughput_mbps"].notna()]
    texts: dict[str, list[str]] = {}
    for trial, flow, rate in zip(
        known["trial"], known["flow"], known["throughput_mbps"], strict=True
    ):
        texts.setdefault(str(trial), []).append(f"{flow} {rate:.3g}")
    return {trial: ", ".join(each) for trial, each in texts.items()}


def _links(trial: Trial, folder: Path, page_folder: Path) -> tuple[str, str, str]:
    """Return the addresses of its captures, its folder, and what `testbed report TRIAL` made."""
    address = quote(os.path.relpath(f"{folder}/{trial.path.name}", page_folder)) + "/"
    has_captures = any(capture.file for capture in trial.record.captures)
    has_page = (trial.path / FIGURES / TRIAL_PAGE).is_file()
    captures = f"{address}{CAPTURES_FOLDER}/" if has_captures else ""
    return captures, address, f"{address}{FIGURES}/{TRIAL_PAGE}" if has_page else ""


def verdicts(results: ExperimentResults) -> dict[str, int]:
    """Count the trials by verdict."""
    first = results.rows.drop_duplicates("trial")
    ran = first[first["status"] == "ok"]["verdict"].replace("", "not judged")
    order = ("valid", "suspect", "invalid", "not judged")
    return {name: int((ran == name).sum()) for name in order if (ran == name).any()}


def statuses(results: ExperimentResults) -> dict[str, int]:
    """Count the trials by status."""
    first = results.rows.drop_duplicates("trial")["status"]
    return {str(name): int(count) for name, count in first.value_counts().items()}


def doubts(results: ExperimentResults) -> list[tuple[str, int, str, str]]:
    """Verdict, count, reason and the trials' numbers, the most frequent first."""
    first = results.rows.drop_duplicates("trial")
    bad = first[first["verdict"].isin(["suspect", "invalid"])]
    reasons = [
        (str(verdict), len(group), str(why), ranges([int(n) for n in group["number"]]))
        for (verdict, why), group in bad.groupby(["verdict", "why"])
    ]
    return sorted(reasons, key=lambda row: (row[0], -row[1]))


def ranges(numbers: Sequence[int]) -> str:
    """Write 1, 2, 3, 7 as `1-3 7`, to keep a thousand trials short."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return " ".join("-".join(map(str, part)) for part in parts)
