"""TCP before CBR starts and beside it: the tests of the third experiments over time.

The bounds, chosen beforehand; CBR runs from 40 to 60 s in the full form, and other times scale
with it. *Before* is the last three quarters of the time until CBR starts (slow start is over),
*beside CBR* all but its first second. *Steady* is a coefficient of variation of at most 10 % in
bins of 1 s. *Recovers faster* is a higher throughput in the five seconds from CBR's start: about 75
round trips.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.claims.engine.selection import Group
from analysis.metrics.digest import NotMeasured

ONSET_S = 5

Stretch = tuple[float, float]


@dataclass(frozen=True)
class Phases:
    """Stretches of a trial, in whole seconds."""

    before: Stretch
    beside: Stretch
    onset: Stretch


def phases(group: Group) -> Phases:
    """By when the trials' CBR ran."""
    cbr = group.where(flow="cbr").rows
    if cbr.empty or cbr["start_s"].isna().all():
        raise NotMeasured("the trials have no CBR flow")
    start = round(float(cbr["start_s"].median()))
    stop = start + round(float(cbr["duration_s"].median()))
    if start < 4 or stop < start + 2:
        raise NotMeasured(
            f"CBR ran from {start} to {stop}  s: too short to separate before from beside"
        )
    return Phases((start / 4, start), (start + 1, stop), (start, min(stop, start + ONSET_S)))
