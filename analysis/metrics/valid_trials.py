"""Trials that count: statistics leave out those that did not run, and those that are invalid."""

from __future__ import annotations

import pandas as pd

INVALID = "invalid"  # analysis.verdict.checks.Grade
SUSPECT = "suspect"


def invalid(metrics: pd.DataFrame) -> pd.Series[bool]:
    """The rows of invalid trials; a table without verdicts has none."""
    if "verdict" not in metrics:
        return pd.Series(False, index=metrics.index)
    return metrics["verdict"] == INVALID


def counted(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of trials that ran and are not invalid."""
    return metrics[(metrics["status"] == "ok") & ~invalid(metrics)]
