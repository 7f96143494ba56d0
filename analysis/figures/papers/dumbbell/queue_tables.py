"""Joshi, Hattikar's tables in their own form, their printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis.claims.joshi_hattikar.jh_numbers import JH_DROP_RATES, JH_LATENCIES_S
from analysis.figures.papers.dumbbell.dumbbell_queues import QUEUE, SHOWN, queues
from analysis.figures.plotting import cases
from analysis.figures.plotting.sheet import Cell, Head, Sheet, mean_cell, printed
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults

# Joshi, Hattikar, their tables of experiment 3: drop rate, and latency in seconds.
JH = {key: (rate, JH_LATENCIES_S[key]) for key, rate in JH_DROP_RATES.items()}
HEADS = (
    Head("TCP"),
    Head("queue"),
    Head("n", number=True),
    Head("drop rate", hint="of the TCP flow's packets at the bottleneck", number=True),
    Head("drop rate, paper", number=True),
    Head("latency", "s", "mean round trip of the TCP flow: what the paper's numbers can be", True),
    Head("latency, paper", "s", number=True),
    Head("one-way, TCP", "s", "mean one-way delay of the TCP flow's data packets", True),
    Head("one-way, CBR", "s", "mean one-way delay of the CBR flow's packets", True),
)


def queue_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Drop rate and latency by queue, one table per profile."""
    rows = results.good
    if QUEUE not in rows:
        return
    for case, own in cases.split(rows, ("profile",), SHOWN):
        title = "Drop rate and latency as Joshi and Hattikar print them"
        yield cases.titled(title, case), _queues(own)


def _queues(rows: pd.DataFrame) -> Sheet:
    lines = []
    for variant in sorted(set(rows.loc[rows["kind"] == "tcp", "variant"])):
        for queue in queues(rows):
            own = rows[(rows[f"{AXIS}variant"] == variant) & (rows[QUEUE] == queue)]
            tcp, cbr = own[own["kind"] == "tcp"], own[own["kind"] == "cbr"]
            drops, latency = JH.get((variant, queue), (None, None))
            line = (
                Cell(variant, variant),
                Cell(queue, queue),
                Cell(str(len(tcp)), str(len(tcp)), True),
                mean_cell(tcp["drop_rate"]),
                printed(drops),
                mean_cell(tcp["rtt_mean_ms"] / 1e3),
                printed(latency),
                mean_cell(tcp["owd_mean_ms"] / 1e3),
                mean_cell(cbr["owd_mean_ms"] / 1e3),
            )
            lines.append(line)
    return Sheet(HEADS, tuple(lines))
