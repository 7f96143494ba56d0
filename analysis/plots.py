"""The figures of the experiments: each takes a results folder and returns the files it wrote.

What draws is imported when it is needed: experiments name these functions, and the
command line names experiments.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def router_bottleneck(results: Path, metrics: pd.DataFrame) -> list[Path]:
    """Throughput, delay, queue and window over time, a column a variant."""
    from analysis.router import figure

    return figure.draw(results, metrics)
