"""ns-2's NewReno under loss events: `parvez_ns2.csv`."""

from __future__ import annotations

import pandas as pd

from analysis.claims.engine.reference import Reference

FINE_TICK_S = 0.01  # of ns-2's timers: with 0.1 s, four losses cause no timeout


def ns2_newreno(reference: Reference, *, impatient: bool, p: float) -> pd.DataFrame:
    """By m, with a timer of at least 0.2 s: `goodput_pps`, and `p`, the rate of events met."""
    table = reference.table("parvez_ns2.csv")
    if table.empty:
        return pd.DataFrame(columns=["goodput_pps", "p"], dtype=float)
    chosen = (table["mode"] == "B") & (table["tick"] == FINE_TICK_S) & (table["p"] == p)
    own = table[chosen & (table["imp"] == impatient)]
    means = own.groupby("m")[["goodput_pps", "p_meas"]].mean()
    return means.rename(columns={"p_meas": "p"})
