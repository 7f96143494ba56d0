"""Two TCP flows beside CBR: the tests of the papers' second experiments.

A flow's *share* is its part of the throughput of both TCP flows of a trial. A pair is *fair* when
its mean share lies within 5 percentage points of a half: 55 to 45 is a ratio of 1.2, which one
would hardly see in the papers' charts. One flow *takes more* when its mean share is above a half
and not equal to it (1 point).
"""

from __future__ import annotations

import math

import pandas as pd

from analysis.claims.dumbbell.load_claims import CONGESTED, LINUX_VEGAS, where
from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import (
    DROPS,
    SHARE,
    Outcome,
    all_are,
    contrasts,
    mean,
    spread,
    within,
)
from analysis.claims.engine.selection import Group, sample
from analysis.metrics.per_second import NotMeasured

FAIR = 0.05
HALF = 0.5
CELLS = ("axis_cbr_mbit", "position")


def shares(group: Group, first: str, second: str) -> pd.DataFrame:
    """A row a trial of the pair, in either position: the first variant's `share`, and both drop
    rates."""
    # of a pair of likes there is one position, and the first flow is the first
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
    what = f"share of the first {variant} flow, {_loads(found)},"
    part = within(what, SHARE, own, HALF - FAIR, HALF + FAIR)
    why = (
        "Two flows of one variant on like ways differ in when they start and in whose packets the "
        "full queue drops: a lead that lasts is the variant's own failure to even it out."
    )
    rows = (*_share_rows(group, found, variant, variant), _single_runs(found))
    return Finding((part,), rows, why)


def takes_more(group: Group, winner: str, loser: str) -> Finding:
    """In the mean over the loads."""
    found = shares(group, winner, loser)
    part = _more(winner, found)
    return Finding((part,), _share_rows(group, found, winner, loser), _why(group, loser))


def always_takes_more(group: Group, winner: str, loser: str) -> Finding:
    """At every load."""
    found = shares(group, winner, loser)
    triples = []
    for load, rows in found.groupby("axis_cbr_mbit"):
        own = sample(rows, "share", ("position",))
        half = dict.fromkeys(own, HALF)
        triples.append((f"{winner}'s share at CBR {load:g}", own, "a half", half))
    part = all_are(Outcome.ABOVE, contrasts(SHARE, triples, paired=True), _loads(found))
    return Finding((part,), _share_rows(group, found, winner, loser), _why(group, loser))


def more_and_drops_more(group: Group, winner: str, loser: str) -> Finding:
    """More in the mean, and a higher drop rate at high CBR."""
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
    more = _more(winner, found)
    rows = (
        *_share_rows(group, found, winner, loser),
        Row(f"drop rate of {winner}, {where(CONGESTED)}", spread(DROPS, ours)),
        Row(f"drop rate of {loser}, {where(CONGESTED)}", spread(DROPS, theirs)),
    )
    return Finding((more, drops), rows, _why(group, loser))


def fairer_to_itself(group: Group) -> Finding:
    """Trials of like pairs are nearer to a half than trials of unlike ones."""
    like = [shares(group, each, each) for each in ("reno", "vegas")]
    unlike = [shares(group, "newreno", each) for each in ("reno", "vegas")]
    samples = [
        sample(pd.concat(tables).assign(kind=name), "imbalance", ("axis_pair", "axis_cbr_mbit"))
        for name, tables in (("like", like), ("unlike", unlike))
    ]
    found = contrasts(
        SHARE, [("like pairs' distance from a half", samples[0], "unlike", samples[1])]
    )
    rows = tuple(
        Row(f"distance from a half, {name}", spread(SHARE, own))
        for name, own in zip(("like pairs", "unlike pairs"), samples, strict=True)
    )
    why = (
        "In single trials like flows part ways too, as one of them loses more packets: unlike "
        "pairs are no further from a half than that."
    )
    return Finding((all_are(Outcome.BELOW, found),), rows, why)


def _more(winner: str, found: pd.DataFrame) -> Part:
    own = sample(found, "share", CELLS)
    half = dict.fromkeys(own, HALF)
    return all_are(
        Outcome.ABOVE,
        contrasts(SHARE, [(f"{winner}'s share", own, "a half", half)], paired=True),
        _loads(found),
    )


def _loads(found: pd.DataFrame) -> str:
    """Those that were run: a profile may have fewer than the paper."""
    return where(sorted(found["axis_cbr_mbit"].unique()))


def _share_rows(group: Group, found: pd.DataFrame, first: str, second: str) -> tuple[Row, ...]:
    """The mean, and each load."""
    loads = sorted(found["axis_cbr_mbit"].unique())
    pair = f"{first}/{second}"
    rows = [_share_row(group, pair, f"share of {first} in {pair}, mean of the loads", found, loads)]
    for load in loads:
        at = found[found["axis_cbr_mbit"] == load]
        rows.append(_share_row(group, pair, f"the same at CBR {load:g} Mbit/s", at, [load]))
    return tuple(rows)


def _share_row(group: Group, pair: str, what: str, found: pd.DataFrame, loads: list[float]) -> Row:
    ns2 = group.reference.share(pair, loads, group.window)
    return Row(
        what,
        spread(SHARE, sample(found, "share", CELLS)),
        ns2=SHARE.write(ns2) if math.isfinite(ns2) else "",
    )


def _single_runs(found: pd.DataFrame) -> Row:
    """What a mean hides: one trial's larger share."""
    worst = float((found["imbalance"] + HALF).max())
    typical = mean(sample(found, "imbalance", CELLS))
    return Row(
        "single trials: mean distance from a half, largest share",
        f"{SHARE.write(typical)}, {SHARE.write(worst)}",
    )


def _why(group: Group, loser: str) -> str:
    """Why the difference is what it is, or none."""
    if loser == "vegas":
        return _why_vegas(group)
    return _why_equal(group)


def _why_vegas(group: Group) -> str:
    return f"{LINUX_VEGAS} {_why_equal(group)}" if group.window == "small" else LINUX_VEGAS


def _why_equal(group: Group) -> str:
    if group.window == "small":
        return (
            "With a window of 20 packets each flow is held to 2.6 Mbit/s, whatever its variant, "
            "until CBR leaves less than twice that: the difference shows at high CBR only."
        )
    return (
        "Which flow gets more where all losses are the queue's depends on how often it halves its "
        "window and how soon it repairs a loss; the table has it load by load."
    )
