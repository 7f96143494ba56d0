"""Figure 4 and table II recomputed from the paper's equations, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from experiments.parvez_mahanti_williamson.models import (
    Regions,
    imp_cycle_rtts,
    imp_window,
    losses_of_cycle,
    sbs_cycle_rtts,
    sbs_most_losses,
    sbs_window,
)
from experiments.parvez_mahanti_williamson.printed import BackgroundRow


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


def break_even_rto(p: float, m: float) -> float:
    """The RTO, in round trips, with which both have the same throughput; IMP's gain ends there."""
    return sbs_cycle_rtts(sbs_window(p, m), m) - imp_cycle_rtts(imp_window(p), 0)


ROUNDING = 0.00005  # half of the last digit of a rate printed as 0.07 %


@dataclass(frozen=True)
class Recomputed:
    """Equation 4 at a row's printed rates, in segments a round trip."""

    row: BackgroundRow
    prediction: float
    lowest: float  # that rates which are printed so allow
    highest: float
    losses_needed: float  # the m with which the printed prediction would come out

    @property
    def losses_per_event(self) -> float:
        """m by the printed rates."""
        return self.row.loss_rate / self.row.loss_event_rate

    @property
    def deviation(self) -> float:
        """By how much it is above the printed prediction, as a part of that."""
        return self.prediction / self.row.predicted - 1

    @property
    def explained(self) -> bool:
        """The rounding of the rates alone can make the printed prediction."""
        return self.lowest <= self.row.predicted <= self.highest


def recompute(row: BackgroundRow) -> Recomputed:
    """A row's prediction from its loss rates, and how far their rounding leaves it open."""
    p, losses = row.loss_event_rate, row.loss_rate
    return Recomputed(
        row,
        prediction=segments_a_round_trip(p, losses / p),
        # the throughput falls with both rates
        lowest=segments_a_round_trip(p + ROUNDING, (losses + ROUNDING) / (p + ROUNDING)),
        highest=segments_a_round_trip(p - ROUNDING, (losses - ROUNDING) / (p - ROUNDING)),
        losses_needed=losses_of_cycle(p, 1 / (p * row.predicted)),
    )


def segments_a_round_trip(p: float, m: float) -> float:
    """Equation 4 times the RTT, as table II has it, whatever the domain: the table goes past it."""
    return 1 / p / sbs_cycle_rtts(sbs_window(p, m), m)


def mean_error(rows: Iterable[BackgroundRow]) -> float:
    """Mean of |simulated - predicted| / simulated over the rows: PMW's error of a model."""
    return fmean(abs(row.simulated - row.predicted) / row.simulated for row in rows)
