"""Two TCP flows beside CBR: the tests of the papers' second experiments.

A flow's *share* is its part of the throughput of both TCP flows of a trial. A pair is *fair* when
its mean share lies within 5 percentage points of a half: 55 to 45 is a ratio of 1.2, which is
hardly visible in the papers' charts. One flow *takes more* when its mean share is above a half and
not equal to it (1 point).
"""

from __future__ import annotations

import math

import pandas as pd

from analysis.claims.dumbbell.load_judges import where
from analysis.claims.dumbbell.ns2_means import ns2_share
from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, mean, spread, within
from analysis.claims.engine.quantities import SHARE
from analysis.claims.engine.selection import Group, sample
from analysis.metrics.digest import NotMeasured

FAIR = 0.05
HALF = 0.5
CELLS = ("axis_cbr_mbit", "position")


def shares(group: Group, first: str, second: str) -> pd.DataFrame:
    """One row per trial of the pair, in either position: the first variant's `share`, and both drop
    rates."""
    # a pair of the same variant has one position, and its first flow counts as the first
    names = {f"{second}/{first}": ("tcp2", "tcp1")} | {f"{first}/{second}": ("tcp1", "tcp2")}
    if not set(names) & set(group.values("pair")):
        raise NotMeasured(
            f"no usable trials of the pair {first}/{second} (profile {group.profile})",
            f"testbed run {group.experiment}",
        )
    parts = []
    for pair, (one, other) in names.items():
        rows = group.where(pair=pair).rows
        own, others = (rows[rows["flow"] == flow].set_index("trial") for flow in (one, other))
        theirs = others["throughput_mbps"].reindex(own.index)
        parts.append(
            own.assign(
                share=own["throughput_mbps"] / (own["throughput_mbps"] + theirs),
                other_drop_rate=others["drop_rate"].reindex(own.index),
                position=pair,
            ).reset_index()
        )
    found = pd.concat(parts, ignore_index=True)
    return found.assign(imbalance=(found["share"] - HALF).abs())


def fair(group: Group, variant: str) -> Finding:
    """The pair of a variant with itself."""
    found = shares(group, variant, variant)
    own = sample(found, "share", CELLS)
    what = f"share of the first {variant} flow, {loads_of(found)},"
    part = within(what, SHARE, own, HALF - FAIR, HALF + FAIR)
    rows = (*share_rows(group, found, variant, variant), _single_runs(found))
    return Finding((part,), rows)


def takes_more(group: Group, winner: str, loser: str) -> Finding:
    """Averaged over the loads."""
    found = shares(group, winner, loser)
    part = takes_more_part(winner, found)
    return Finding((part,), share_rows(group, found, winner, loser))


def takes_more_part(winner: str, found: pd.DataFrame) -> Part:
    own = sample(found, "share", CELLS)
    half = dict.fromkeys(own, HALF)
    return all_are(
        Outcome.ABOVE,
        contrasts(SHARE, [(f"{winner}'s share", own, "a half", half)], paired=True),
        loads_of(found),
    )


def loads_of(found: pd.DataFrame) -> str:
    """The loads that were run; a profile may have fewer than the paper."""
    return where(sorted(found["axis_cbr_mbit"].unique()))


def share_rows(group: Group, found: pd.DataFrame, first: str, second: str) -> tuple[Row, ...]:
    """The mean, and each load."""
    loads = sorted(found["axis_cbr_mbit"].unique())
    pair = f"{first}/{second}"
    rows = [_share_row(group, pair, f"share of {first} in {pair}, mean of the loads", found, loads)]
    for load in loads:
        at = found[found["axis_cbr_mbit"] == load]
        rows.append(_share_row(group, pair, f"the same at CBR {load:g} Mbit/s", at, [load]))
    return tuple(rows)


def _share_row(group: Group, pair: str, what: str, found: pd.DataFrame, loads: list[float]) -> Row:
    ns2 = ns2_share(group.reference, pair, loads, group.window)
    return Row(
        what,
        spread(SHARE, sample(found, "share", CELLS)),
        ns2=SHARE.write(ns2) if math.isfinite(ns2) else "",
    )


def _single_runs(found: pd.DataFrame) -> Row:
    """The largest share in any single trial, which a mean hides."""
    worst = float((found["imbalance"] + HALF).max())
    typical = mean(sample(found, "imbalance", CELLS))
    return Row(
        "single trials: mean distance from a half, largest share",
        f"{SHARE.write(typical)}, {SHARE.write(worst)}",
    )
