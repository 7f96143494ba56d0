"""The figures of the experiments: each takes a results folder and returns the files it wrote.
And the tables of those that have one of their own.

What draws is imported when it is needed: experiments name these functions, and the
command line names experiments.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from analysis.figures.fall_floyd.outcome_table import Expectations
    from analysis.statistics.text_tables import Table


def router_bottleneck(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """Throughput, delay, queue and window over time, a column a variant."""
    from analysis.figures.router import router_figure

    return router_figure.draw(results, metrics)


def fall_floyd(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """Segments over time, a column a variant, a row a number of losses."""
    from analysis.figures.fall_floyd import fall_floyd_figure

    return fall_floyd_figure.draw(results)


def fall_floyd_table(results: Path, metrics: pd.DataFrame, expected: Expectations) -> Table:
    """What each variant was expected to do, and what it did."""
    from analysis.figures.fall_floyd import outcome_table

    return outcome_table.expected_and_seen(results, expected)


def players(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """What lay in the buffer, of the model and of the browser."""
    from analysis.figures.papers import players_figure

    return players_figure.draw(results)


def players_table(results: Path, metrics: pd.DataFrame) -> Table:
    """The model's measures beside the browser's."""
    from analysis.figures.papers import players as found

    return found.table(results)


def variants(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """Throughput, retransmissions, timeouts and round trips, a line a variant."""
    from analysis.figures.papers import variants_figure

    return variants_figure.draw(results, metrics)


def sweep(results: Path, metrics: pd.DataFrame, x: str, lines: str) -> list[Path]:
    """Throughput over one axis, a line a value of another (or of a column of the metrics)."""
    from analysis.figures.shared import sweep_figure

    return sweep_figure.draw(results, metrics, x, lines)


def video_access(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """When videos had come and how long they stood still, network by network."""
    from analysis.figures.papers import video_figure

    return video_figure.draw(results, metrics)
