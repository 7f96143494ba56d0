"""Scores of a path that changes: how long until its flow is what it will be (RFC 5166, 2.2)."""

from __future__ import annotations

import pandas as pd

from analysis.evaluation.seen_trial import SeenTrial

LAST = 1 / 3  # of the time after the change: where the new equilibrium is
ENOUGH, MOST = 0.9, 1.1  # of its rate and of its queue


def settling_s(seen: SeenTrial) -> float:
    """From the change until a second with 90 % of the rate, and no more than 110 % of the queue (or
    a packet), of the last third; if there is none, until the end."""
    changed_s = seen.trial.scenario.measure_from_s
    rate = _since(seen.rates().sum(axis=1), changed_s)
    queue = _since(seen.backlog_packets(), changed_s).reindex(rate.index)
    last = rate.index >= rate.index[-1] + 1 - LAST * len(rate)
    settled = (rate >= ENOUGH * rate[last].mean()) & (queue <= max(1, MOST * queue[last].mean()))
    until = rate.index[settled.to_numpy()]
    return float((until[0] if len(until) else rate.index[-1]) + 1 - changed_s)


def _since(values: pd.Series, begin_s: float) -> pd.Series:
    """Of whole seconds from then on."""
    return values[values.index >= begin_s]
