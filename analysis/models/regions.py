"""Regions in which one form of NewReno is faster: Parvez, Mahanti, Williamson (2006), figure 4.

Below m* losses per event the two are the same. Above, SBS is better up to m_t, where the
throughputs cross, and IMP from there on, as long as enough of the window arrives for three
duplicate ACKs.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.models.newreno import (
    critical_losses,
    imp_cycle_rtts,
    imp_window,
    losses_of_cycle,
)

DUPLICATES = 3  # segments of a window that must arrive for a fast retransmission


@dataclass(frozen=True)
class Regions:
    """The map for one ratio of RTO to RTT; everything else depends on p and m."""

    rto_rtts: float

    @property
    def critical(self) -> int:
        """m*: the least number of losses from which the two differ."""
        return critical_losses(self.rto_rtts)

    def crossing(self, p: float) -> float:
        """m_t: the number of losses at which both have the same throughput."""
        return losses_of_cycle(p, imp_cycle_rtts(imp_window(p), self.rto_rtts))

    def sbs_end(self, p: float) -> float:
        """The losses up to which SBS is better: m_t, or as many as its own window bears."""
        return min(self.crossing(p), sbs_most_losses(p))

    def imp_end(self, p: float) -> float:
        """The most losses that IMP's window bears: W_IMP - 3."""
        return imp_window(p) - DUPLICATES


def sbs_most_losses(p: float) -> float:
    """The m that equals W_SBS - 3: the window, which shrinks with m, bears no more."""
    # equation 1 with W = m + 3 is 5/8 W²
    return float((8 / (5 * p)) ** 0.5) - DUPLICATES
