"""The results of `incast`: when a request was complete, and what its flows waited for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pandas as pd

from analysis.evaluation.trial_view import LESS, Score, TrialView
from analysis.figures import cases, means
from analysis.figures.figure import Figure
from analysis.figures.general import load_sweep
from analysis.figures.general.messages import said_name
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import half_width
from analysis.statistics.text_tables import TextTable, mean_text


def _request_ms(seen: TrialView) -> float:
    """Return when the request's last flow was complete; one that never was counts to its end."""
    flows = seen.flows.set_index("flow")
    stops_s = pd.Series({each.name: each.stopped_s for each in seen.trial.record.flows})
    ends_s = (flows["start_s"] + flows["completion_s"]).fillna(stops_s)
    return 1e3 * float(ends_s.max() - flows["start_s"].min())


INCAST_SCORES = (
    Score("request_ms", "request complete after (ms)", LESS, _request_ms),
    Score("timeouts", "timeouts", LESS, lambda seen: float(seen.flows["timeouts_seen"].sum())),
)
CELL = ("variant", "queue", "senders")
NOTE = (
    "A request is complete with its last flow; means over n seeds, ± 95 % confidence. Rate: of the "
    "request's bytes until then"
)


def requests(results: ExperimentResults) -> pd.DataFrame:
    """Return a row for each trial: when the request was complete, and the sums over its flows."""
    rows = results.good.assign(
        queue=results.good[f"{AXIS}queue"], senders=results.good[f"{AXIS}senders"]
    )
    trials = rows.groupby([*CELL, "trial", "verdict"], sort=False)
    ends = rows["start_s"] + rows["completion_s"]
    table = trials.agg(
        flows=("flow", "size"),
        finished=("completion_s", "count"),
        median_ms=("completion_s", lambda each: 1e3 * each.median()),
        retransmitted=("retransmitted", "sum"),
        timeouts=("timeouts_seen", "sum"),
        begin_s=("start_s", "min"),
        bits=(f"{AXIS}request_bytes", lambda each: 8 * each.iloc[0]),
    ).reset_index()
    last = ends.groupby(rows["trial"]).max().reindex(table["trial"]).to_numpy()
    whole = table["finished"] == table["flows"]
    took_s = (last - table["begin_s"]).where(whole)
    return table.assign(request_ms=1e3 * took_s, rate_mbps=table["bits"] / took_s / 1e6)


def requests_table(results: ExperimentResults) -> TextTable:
    """Return a line for each variant, queue and number of senders."""
    columns = {
        "request_ms": "request ms",
        "median_ms": "median flow ms",
        "rate_mbps": "rate Mbit/s",
        "retransmitted": "retrans.",
        "timeouts": "timeouts",
    }
    lines = []
    for key, trials in requests(results).groupby(list(CELL), sort=False):
        cells = [str(part) if isinstance(part, str) else f"{part:g}" for part in key]
        cells += [mean_text(trials[name].mean(), half_width(trials[name])) for name in columns]
        lines.append(
            (*cells, str(int((trials["flows"] - trials["finished"]).sum())), str(len(trials)))
        )
    return TextTable((*CELL, *columns.values(), "unfinished", "n"), tuple(lines), NOTE)


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the time until a request is complete over the number of senders."""
    rows = requests(results)
    if rows.empty:
        return
    series = rows["variant"] + ", " + rows["queue"]
    table = rows.assign(**{f"{AXIS}senders": rows["senders"], "series": series})
    drawn = load_sweep.figure(
        [("", table)],
        "senders",
        [
            means.Measure("request_ms", "request complete after (ms)"),
            means.Measure("retransmitted", "retransmissions"),
        ],
        "series",
    )
    yield dataclasses.replace(
        drawn,
        stem="incast",
        title=_message(rows),
        caption="The time until a request is complete, and what was sent again.",
        foot=cases.foot(results, results.good),
    )


def _message(rows: pd.DataFrame) -> str:
    """Name the quickest and the slowest with most senders, by their means."""
    most = rows["senders"].max()
    of_most = rows[rows["senders"] == most].groupby(["variant", "queue"], sort=False)
    times = of_most["request_ms"].mean().dropna().sort_values()
    if times.empty:
        return f"No request to {most:g} senders was complete."
    ends = [
        f"{ms:.3g} ms with {said_name(variant)} behind {queue}"
        for (variant, queue), ms in times.items()
    ]
    to = f" and {ends[-1]}" if len(ends) > 1 else ""
    return f"A request to {most:g} senders takes {ends[0]}{to}."
