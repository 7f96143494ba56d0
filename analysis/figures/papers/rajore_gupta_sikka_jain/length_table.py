"""Wireshark's window of packet lengths, a paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.captures.lengths import ALL, BUCKETS
from analysis.claims.rajore_gupta_sikka_jain.rgsj_numbers import LengthsRow
from analysis.figures.plotting.sheet import Cell, Head, Sheet
from analysis.metrics.digest import lengths_of

LENGTH_HEADS = (
    Head("Topic / Item"),
    *(
        head
        for words in (
            "Count",
            "Average",
            "Min val",
            "Max val",
            "Rate (ms)",
            "Percent",
            "Burst rate",
            "Burst start",
        )
        for head in (Head(words, number=True), Head("paper", number=True))
    ),
)
COLUMNS: tuple[tuple[str, str, Callable[[LengthsRow], float | None]], ...] = (
    ("count", ".0f", lambda row: row.count),
    ("average", ".2f", lambda row: row.average),
    ("min", ".0f", lambda row: row.least),
    ("max", ".0f", lambda row: row.most),
    ("rate_per_ms", ".4f", lambda row: row.rate),
    ("percent", ".2f", lambda row: row.percent),
    ("burst_rate_per_ms", ".4f", lambda row: row.burst_rate),
    ("burst_start_s", ".3f", lambda row: row.burst_start_s),
)


def length_sheet(digest: pd.DataFrame, paper: Sequence[LengthsRow]) -> Sheet:
    """The table of a flow's digest; empty if the digest has no lengths."""
    table = lengths_of(digest)
    return Sheet(LENGTH_HEADS, () if table.empty else tuple(_length_lines(table, paper)))


def _length_lines(table: pd.DataFrame, paper: Sequence[LengthsRow]) -> Iterator[tuple[Cell, ...]]:
    for name, (_, own), theirs in zip(_buckets(), table.iterrows(), paper, strict=True):
        cells = [Cell(name, name)]
        for column, form, get in COLUMNS:
            for value in (float(own[column]), get(theirs)):
                known = value is not None and np.isfinite(value)
                cells.append(
                    Cell(format(value, form), f"{value:.9g}", True)
                    if known
                    else Cell("–", "", True)
                )
        yield tuple(cells)


def _buckets() -> list[str]:
    """The names that Wireshark gives the rows."""
    ends = [f"-{high - 1}" for high in BUCKETS[1:]] + [" and greater"]
    return [ALL, *(f"{low}{end}" for low, end in zip(BUCKETS, ends, strict=True))]
