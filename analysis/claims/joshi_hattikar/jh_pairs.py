"""JH's second experiment, as far as it differs from KS's."""

from __future__ import annotations

from analysis.claims.dumbbell.pair_judges import (
    HALF,
    loads_of,
    share_rows,
    shares,
)
from analysis.claims.engine.answers import Finding
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts
from analysis.claims.engine.quantities import SHARE
from analysis.claims.engine.selection import Group, sample


def always_takes_more(group: Group, winner: str, loser: str) -> Finding:
    """At every load."""
    found = shares(group, winner, loser)
    triples = []
    for load, rows in found.groupby("axis_cbr_mbit"):
        own = sample(rows, "share", ("position",))
        half = dict.fromkeys(own, HALF)
        triples.append((f"{winner}'s share at CBR {load:g}", own, "a half", half))
    part = all_are(Outcome.ABOVE, contrasts(SHARE, triples, paired=True), loads_of(found))
    return Finding((part,), share_rows(group, found, winner, loser))
