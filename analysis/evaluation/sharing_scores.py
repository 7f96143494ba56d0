"""Scores of sharing over time: who has what, since when, and how evenly (RFC 5166, 2.2 and 2.3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.evaluation.seen_trial import SeenTrial, jain
from analysis.trials.packets import NAN

FAIR = 0.9  # Jain's index from which on a share counts as fair
LAST = 1 / 3  # of a trial: where a latecomer has had time


def jain_over_time(seen: SeenTrial) -> float:
    """The mean over the seconds in which several flows ran, in percent."""
    rates = _shared(seen.rates())
    return 100 * float(rates.apply(jain, axis=1).mean())


def time_to_fair_s(seen: SeenTrial) -> float:
    """From a flow's arrival among others until Jain's index reaches 0.9: the mean of all arrivals.
    One that does not before the next change counts with the time until then."""
    rates, changes = seen.rates(), seen.changes()
    return _mean(_waits(seen, rates, changes))


def _waits(seen: SeenTrial, rates: pd.DataFrame, changes: list[float]) -> Iterator[float]:
    arrivals = sorted(each.started_s for each in seen.trial.record.flows)[1:]
    for came in arrivals:
        until = min(t for t in changes if t > came + 1)
        between = rates[(rates.index >= came) & (rates.index + 1 <= until)]
        index = _shared(between).apply(jain, axis=1)
        fair = index[index >= FAIR].index.to_numpy()
        yield (float(fair[0]) + 1 if len(fair) else until) - came


def oscillation(seen: SeenTrial) -> float:
    """The deviation of a flow's rate in seconds, in percent of its mean, where no flow comes or
    goes; the first second of each such time is left out."""
    rates, changes = seen.rates(), seen.changes()
    found = []
    for begin, end in itertools.pairwise(changes):
        own = rates[(rates.index >= begin + 1) & (rates.index + 1 <= end)]
        means = own.mean()
        if len(own) > 1:
            spread = own.std() / means.where(means > 0)
            found += [float(each) for each in spread.dropna()]
    return 100 * _mean(iter(found))


def lesser_share(seen: SeenTrial) -> float:
    """The lesser of the two flows' shares of the last third of the trial, in percent: half is fair,
    and a latecomer that takes most of the link is as unfair as one that gets little."""
    end = max(each.stopped_s for each in seen.trial.record.flows)
    rates = seen.rates()
    last = rates[rates.index >= (1 - LAST) * end]
    whole = float(last.to_numpy().sum())
    return 100 * float(last.sum().min()) / whole if whole else NAN


def long_of_fair(seen: SeenTrial) -> float:
    """What the flow across all bottlenecks has of its max–min share, half of the link: percent."""
    return 100 * float(seen.flow("long")["throughput_mbps"]) / (seen.rate_mbit / 2)


def lot_utilisation(seen: SeenTrial) -> float:
    """The bottlenecks' mean utilisation, in percent."""
    cross = seen.without("long")["throughput_mbps"].mean()
    long = seen.flow("long")["throughput_mbps"]
    return 100 * float(cross + long) / seen.rate_mbit


def _shared(rates: pd.DataFrame) -> pd.DataFrame:
    """The seconds in which at least two flows ran."""
    return rates[rates.notna().sum(axis=1) > 1]


def _mean(values: Iterator[float]) -> float:
    found = [each for each in values if not math.isnan(each)]
    return float(np.mean(found)) if found else NAN
