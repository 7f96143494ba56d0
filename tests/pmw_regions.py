"""PMW's map as predicates and curves, to hold the drawn map and the printed numbers against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from analysis.throughput_models import Conditions, Prediction
from experiments.parvez_mahanti_williamson.models import (
    DUPLICATES,
    Regions,
    imp_cycle_rtts,
    imp_segments,
    imp_window,
    predict,
    sbs_cycle_rtts,
    sbs_most_losses,
    sbs_segments,
    sbs_window,
)


class Region(StrEnum):
    """The better form at a place (p, m) of the map."""

    EQUAL = "equal"
    SBS = "sbs"
    IMP = "imp"
    TIMEOUT = "timeout"  # too few duplicate ACKs are left: both time out at once


def region(regions: Regions, p: float, m: float) -> Region:
    if m < regions.critical:
        return Region.EQUAL if m <= sbs_most_losses(p) else Region.TIMEOUT
    if m < regions.sbs_end(p):
        return Region.SBS
    return Region.IMP if m <= regions.imp_end(p) else Region.TIMEOUT


def sbs_vanishes(regions: Regions) -> float:
    """The p from which SBS's window does not bear m* losses."""
    return 1 / sbs_segments(regions.critical + DUPLICATES, regions.critical)


def imp_vanishes(regions: Regions) -> float:
    """The p from which IMP's window does not bear m* losses."""
    return 1 / imp_segments(regions.critical + DUPLICATES)


def break_even_rto(p: float, m: float) -> float:
    """The RTO, in round trips, with which both have the same throughput; IMP's gain ends there."""
    return sbs_cycle_rtts(sbs_window(p, m), m) - imp_cycle_rtts(imp_window(p), 0)


@dataclass(frozen=True)
class CurvePoint:
    """A point of figure 2's curves: the throughput that each model expects at m losses."""

    losses: int
    sbs: Prediction
    imp: Prediction


def curves(p: float, losses: Iterable[int], rtt_s: float, rto_s: float) -> list[CurvePoint]:
    """Figure 2's curves of the models, in segments/s over the losses per event."""
    met = {m: Conditions(p, rtt_s, m, rto_s) for m in losses}
    return [CurvePoint(m, predict("sbs", c), predict("imp", c)) for m, c in met.items()]
