"""Scores of workloads: how long transfers of a size take (RFC 9743, 5.1.5 and 5.2.3)."""

from __future__ import annotations

import pandas as pd

from analysis.evaluation.seen_trial import SeenTrial
from analysis.trials.packets import NAN

SHORT, LONG = "short", "long"
HIGH = 0.99


def took_s(seen: SeenTrial, size: str) -> pd.Series:
    """The completion times of a class of sizes. A transfer that did not finish counts with the
    time until the flow's end, so that who finishes less does not look faster."""
    own = seen.transfers[seen.transfers["size_class"] == size]
    begun_s = own["start_s"].fillna(own["due_s"])
    stops_s = {each.name: each.stopped_s for each in seen.trial.record.flows}
    ends_s = own["flow"].map(stops_s).astype(float)
    return own["completion_s"].astype(float).fillna(ends_s - begun_s)


def short_99_ms(seen: SeenTrial) -> float:
    """The 99th percentile of the short ones."""
    found = took_s(seen, SHORT)
    return 1e3 * float(found.quantile(HIGH)) if len(found) else NAN


def long_mean_s(seen: SeenTrial) -> float:
    """The mean of the long ones; a seed of which none is long does not count."""
    return float(took_s(seen, LONG).mean())
