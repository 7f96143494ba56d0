"""Which NewReno is better where: the map of Parvez, Mahanti, Williamson (2006), figure 4.

Below m* losses an event the two are one. Above, SBS is better up to m_t, where the throughputs
cross, and IMP from there on, as long as enough of the window arrives for three duplicate ACKs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from analysis.models.all_models import predict
from analysis.models.conditions import Conditions, Prediction
from analysis.models.newreno import (
    critical_losses,
    imp_cycle_rtts,
    imp_segments,
    imp_window,
    losses_of_cycle,
    sbs_cycle_rtts,
    sbs_segments,
    sbs_window,
)

DUPLICATES = 3  # segments of a window that must arrive for a fast retransmission


class Region(StrEnum):
    """What the map says of a place (p, m)."""

    EQUAL = "equal"
    SBS = "sbs"
    IMP = "imp"
    TIMEOUT = "timeout"  # too few duplicate ACKs are left: both time out at once


@dataclass(frozen=True)
class Regions:
    """The map for one ratio of RTO to RTT: all else that matters is in p and m."""

    rto_rtts: float

    @property
    def critical(self) -> int:
        """m*: from this many losses on the two differ."""
        return critical_losses(self.rto_rtts)

    def crossing(self, p: float) -> float:
        """m_t: the losses at which both have the same throughput."""
        return losses_of_cycle(p, imp_cycle_rtts(imp_window(p), self.rto_rtts))

    def sbs_end(self, p: float) -> float:
        """Up to how many losses SBS is better: m_t, or what its own window bears."""
        return min(self.crossing(p), sbs_most_losses(p))

    def imp_end(self, p: float) -> float:
        """Up to how many losses IMP's window bears: W_IMP - 3."""
        return imp_window(p) - DUPLICATES

    def region(self, p: float, m: float) -> Region:
        """Where this place lies."""
        if m < self.critical:
            return Region.EQUAL if m <= sbs_most_losses(p) else Region.TIMEOUT
        if m < self.sbs_end(p):
            return Region.SBS
        return Region.IMP if m <= self.imp_end(p) else Region.TIMEOUT

    def sbs_vanishes(self) -> float:
        """The p from which SBS's window does not bear m* losses."""
        return 1 / sbs_segments(self.critical + DUPLICATES, self.critical)

    def imp_vanishes(self) -> float:
        """The p from which IMP's window does not bear m* losses."""
        return 1 / imp_segments(self.critical + DUPLICATES)


def sbs_most_losses(p: float) -> float:
    """The m that is W_SBS - 3: the window, which shrinks with m, bears no more."""
    # equation 1 with W = m + 3 is 5/8 W²
    return float((8 / (5 * p)) ** 0.5) - DUPLICATES


def break_even_rto(p: float, m: float) -> float:
    """The RTO, in round trips, with which both have the same throughput; IMP's gain ends there."""
    return sbs_cycle_rtts(sbs_window(p, m), m) - imp_cycle_rtts(imp_window(p), 0)


@dataclass(frozen=True)
class CurvePoint:
    """A place on figure 2's curves: what the two models expect of m losses an event."""

    losses: int
    sbs: Prediction
    imp: Prediction


def curves(p: float, losses: Iterable[int], rtt_s: float, rto_s: float) -> list[CurvePoint]:
    """Figure 2's curves of the models, in segments/s over the losses of an event."""
    met = {m: Conditions(p, rtt_s, m, rto_s) for m in losses}
    return [CurvePoint(m, predict("sbs", c), predict("imp", c)) for m, c in met.items()]
