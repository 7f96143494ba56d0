"""The transfers of workloads by size: medians and 99th percentiles, as a table."""

from __future__ import annotations

import math

import pandas as pd

from analysis.metrics.valid_trials import invalid
from analysis.statistics.text_tables import UNKNOWN, Table
from analysis.transfers.size_classes import CLASSES, by_class

HIGH = 0.99
HEADINGS = (
    *("size", "transfers", "unfinished"),
    *("completion ms", "99 % ms", "slowdown", "99 %", "retrans."),
)
SIZES = "; ".join(f"{name}: {words}" for name, words in CLASSES.items())
NOTE = (
    f"{SIZES}. Medians and 99th percentiles of the finished; slowdown: over an empty network's time"
)


def transfers_summary(frame: pd.DataFrame) -> Table:
    """A line for each label, workload and size, over all seeds, of trials that are not invalid."""
    good = frame[~invalid(frame)]
    keys = ["label", "flow", "variant"]
    shown = [name for name in keys if name == "variant" or good[name].nunique() > 1]
    rows = []
    for values, own in good.groupby(keys, sort=False):
        named = dict(zip(keys, map(str, values), strict=True))
        for size, members in by_class(own):
            rows.append((*(named[name] for name in shown), size, *_numbers(members)))
    names = {"label": "trial"}
    header = (*(names.get(name, name) for name in shown), *HEADINGS)
    return Table(header, tuple(rows), NOTE)


def _numbers(rows: pd.DataFrame) -> tuple[str, ...]:
    took, slowdown = 1e3 * rows["completion_s"], rows["slowdown"]
    values = (took.median(), took.quantile(HIGH), slowdown.median(), slowdown.quantile(HIGH))
    return (
        str(len(rows)),
        str(int((rows["state"] != "finished").sum())),
        *(_three_digits(float(value)) for value in values),
        str(int(rows["retransmissions"].sum())),
    )


def _three_digits(value: float) -> str:
    if math.isnan(value):
        return UNKNOWN
    return f"{value:.{max(0, 2 - math.floor(math.log10(max(value, 1e-9))))}f}"
