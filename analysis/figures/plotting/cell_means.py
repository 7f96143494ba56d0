"""The means that captions name: each of one cell, with the axes that tell it from the others."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figures.plotting.cases import case, case_words
from analysis.metrics.metric_rows import AXIS, determined, varied_axes


def cell_means(rows: pd.DataFrame, series: str, metrics: Sequence[str]) -> pd.DataFrame:
    """The means over the seeds, one row per cell, named like `cubic (order cbr-first)`."""
    axes = axes_beside(rows, series)
    means = {}
    groups = rows.groupby([series, *(AXIS + name for name in axes)], sort=False, dropna=False)
    for (name, *values), members in groups:
        words = case_words(case(axes, values))
        means[f"{name} ({words})" if words else str(name)] = members[list(metrics)].mean()
    return pd.DataFrame.from_dict(means, orient="index", columns=list(metrics))


def axes_beside(rows: pd.DataFrame, series: str) -> list[str]:
    """The axes that vary within a series: `variant` does not where the series are the variants."""
    return [name for name in varied_axes(rows) if not determined(rows, AXIS + name, [series])]
