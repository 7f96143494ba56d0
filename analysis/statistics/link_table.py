"""The rows of links as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from analysis.metrics.valid_trials import invalid
from analysis.statistics.text_tables import UNKNOWN, Table

# of each column: its heading, its factor, its decimals
HEADINGS = (
    ("flows", "flows", 1, 0),
    ("throughput_mbps", "throughput Mbit/s", 1, 2),
    ("utilisation", "utilisation %", 100, 1),
    ("queue_mean_ms", "queue ms", 1, 1),
    ("queue_p95_ms", "queue 95 % ms", 1, 1),
    ("dropped_packets", "dropped", 1, 0),
    ("marked_packets", "marked", 1, 0),
)


def links_table(frame: pd.DataFrame) -> Table:
    """The means over the seeds, of trials that are not invalid."""
    good = frame[~invalid(frame)]
    labels = good["label"].nunique() > 1
    rows = []
    for (label, link), own in good.groupby(["label", "link"], sort=False):
        name = (str(label),) * labels
        rows.append((*name, str(link), *_numbers(own)))
    header = (*(("trial",) * labels), "link", *(heading for _, heading, _, _ in HEADINGS))
    return Table(header, tuple(rows), "")


def _numbers(rows: pd.DataFrame) -> Iterator[str]:
    for name, _, factor, decimals in HEADINGS:
        mean = float(rows[name].mean())
        yield UNKNOWN if math.isnan(mean) else f"{factor * mean:.{decimals}f}"
