"""KS's second experiment, as far as it differs from JH's."""

from __future__ import annotations

import pandas as pd

from analysis.claims.dumbbell.load_judges import CONGESTED, where
from analysis.claims.dumbbell.pair_judges import (
    CELLS,
    share_rows,
    shares,
    takes_more_part,
)
from analysis.claims.engine.answers import Finding, Row
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, spread
from analysis.claims.engine.quantities import DROPS, SHARE
from analysis.claims.engine.selection import Group, sample
from analysis.metrics.digest import NotMeasured


def more_and_drops_more(group: Group, winner: str, loser: str) -> Finding:
    """A larger mean share, and a higher drop rate at high CBR rates."""
    found = shares(group, winner, loser)
    high = found[found["axis_cbr_mbit"].isin(CONGESTED)]
    if high.empty:
        raise NotMeasured(f"no trials with {where(CONGESTED)}")
    ours, theirs = sample(high, "drop_rate", CELLS), sample(high, "other_drop_rate", CELLS)
    drops = all_are(
        Outcome.ABOVE,
        contrasts(DROPS, [(f"{winner}'s drop rate", ours, f"{loser}'s", theirs)], paired=True),
        where(CONGESTED),
    )
    more = takes_more_part(winner, found)
    rows = (
        *share_rows(group, found, winner, loser),
        Row(f"drop rate of {winner}, {where(CONGESTED)}", spread(DROPS, ours)),
        Row(f"drop rate of {loser}, {where(CONGESTED)}", spread(DROPS, theirs)),
    )
    return Finding((more, drops), rows)


def fairer_to_itself(group: Group) -> Finding:
    """Pairs of one variant are closer to a half than pairs of different variants."""
    like = [shares(group, each, each) for each in ("reno", "vegas")]
    unlike = [shares(group, "newreno", each) for each in ("reno", "vegas")]
    samples = [
        sample(pd.concat(tables).assign(kind=name), "imbalance", ("axis_pair", "axis_cbr_mbit"))
        for name, tables in (("like", like), ("unlike", unlike))
    ]
    found = contrasts(
        SHARE,
        [("like pairs' distance from a half", samples[0], "unlike", samples[1])],
        paired=True,
    )
    rows = tuple(
        Row(f"distance from a half, {name}", spread(SHARE, own))
        for name, own in zip(("like pairs", "unlike pairs"), samples, strict=True)
    )
    return Finding((all_are(Outcome.BELOW, found),), rows)
