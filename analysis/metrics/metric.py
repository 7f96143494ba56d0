"""What a column of the metrics is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A column: its unit, its definition, and whether it is a count (written as an integer)."""

    name: str
    unit: str
    definition: str
    count: bool = False
