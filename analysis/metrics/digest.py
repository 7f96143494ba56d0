"""The series and quantiles of a trial that figures and claims need beside the metrics.

They are one table: a row has a flow, the name of the series or distribution, an x and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from analysis.metrics import flow_digest, per_second, video_digest
from analysis.metrics.flow_digest import Part
from analysis.metrics.measured_flow import MeasuredFlow

COLUMNS = ("flow", "what", "x", "value")

# The parts of a flow's digest; a part of a kind of flow yields nothing for the others.
PARTS: tuple[Callable[[MeasuredFlow], Iterator[Part]], ...] = (
    flow_digest.parts,
    video_digest.parts,
    per_second.parts,
)


def series_table(flows: Iterable[MeasuredFlow]) -> pd.DataFrame:
    """Return the series and quantiles of all flows, one under the other."""
    return _table([_rows(flow, part) for flow in flows for find in PARTS for part in find(flow)])


def _rows(flow: MeasuredFlow, part: Part) -> pd.DataFrame:
    what, x, value = part
    return pd.DataFrame({"flow": flow.record.name, "what": what, "x": x, "value": value})


def _table(parts: list[pd.DataFrame]) -> pd.DataFrame:
    empty = pd.DataFrame({name: pd.Series(dtype="str") for name in COLUMNS})
    found = pd.concat(parts, ignore_index=True) if parts else empty
    return found.astype({"x": float, "value": float})
