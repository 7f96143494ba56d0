"""The scores of each standard evaluation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.evaluation.trial_view import LESS, MORE, Score, TrialView
from analysis.metrics.rates import jain
from analysis.trials.packets import NAN
from testbed.scenario.network import FRAME_BYTES

LAST_AFTER_CHANGE = 1 / 3  # of the time after the change: where the new equilibrium is
MIN_SHARE_OF_RATE, MAX_SHARE_OF_QUEUE = 0.9, 1.1  # of its rate and of its queue


def settling_s(seen: TrialView) -> float:
    """Return the time from the change of the path to its new equilibrium.

    The equilibrium begins with the first second that has 90 % of the rate of the last third, and no
    more than 110 % of its queue (or one packet); without such a second, the whole rest counts.
    """
    changed_s = seen.trial.scenario.measure_from_s
    rate = _since(seen.rates().sum(axis=1), changed_s)
    queue = _since(seen.backlog_packets(), changed_s).reindex(rate.index)
    last = rate.index >= rate.index[-1] + 1 - LAST_AFTER_CHANGE * len(rate)
    settled = (rate >= MIN_SHARE_OF_RATE * rate[last].mean()) & (
        queue <= max(1, MAX_SHARE_OF_QUEUE * queue[last].mean())
    )
    until = rate.index[settled.to_numpy()]
    return float((until[0] if len(until) else rate.index[-1]) + 1 - changed_s)


def _since(values: pd.Series, begin_s: float) -> pd.Series:
    """Return the values of the seconds from `begin_s` on."""
    return values[values.index >= begin_s]


FAIR_INDEX = 0.9  # Jain's index from which on a share counts as fair
LATE_PART = 1 / 3  # of a trial: where a latecomer has had time


def jain_over_time(seen: TrialView) -> float:
    """Return the mean of Jain's index over the seconds in which several flows ran, in percent."""
    rates = _shared(seen.rates())
    return 100 * float(rates.apply(_jain_of_known, axis=1).mean())


def _jain_of_known(rates: pd.Series) -> float:
    """Return Jain's index of the flows that ran."""
    return jain(rates.dropna())


def time_to_fair_s(seen: TrialView) -> float:
    """Return the mean time from a flow's arrival until Jain's index reaches 0.9.

    If it does not before the next arrival or end of a flow, the time until then counts.
    """
    rates, changes = seen.rates(), seen.changes()
    return _mean(_waits(seen, rates, changes))


def _waits(seen: TrialView, rates: pd.DataFrame, changes: list[float]) -> Iterator[float]:
    arrivals = sorted(each.started_s for each in seen.trial.record.flows)[1:]
    for came in arrivals:
        until = min(t for t in changes if t > came + 1)
        between = rates[(rates.index >= came) & (rates.index + 1 <= until)]
        index = _shared(between).apply(_jain_of_known, axis=1)
        fair = index[index >= FAIR_INDEX].index.to_numpy()
        yield (float(fair[0]) + 1 if len(fair) else until) - came


def oscillation(seen: TrialView) -> float:
    """Return the mean deviation of a flow's rate over seconds, in percent of its mean rate.

    Only the times between arrivals and ends of flows count, without their first second.
    """
    rates, changes = seen.rates(), seen.changes()
    variations = []
    for begin, end in itertools.pairwise(changes):
        inside = rates[(rates.index >= begin + 1) & (rates.index + 1 <= end)]
        means = inside.mean()
        if len(inside) > 1:
            spread = inside.std() / means.where(means > 0)
            variations += [float(each) for each in spread.dropna()]
    return 100 * _mean(iter(variations))


def lesser_share(seen: TrialView) -> float:
    """Return the lesser of the two flows' shares in the last third of the trial, in percent.

    Half is fair; a latecomer that takes most of the link is as unfair as one that gets little.
    """
    end = max(each.stopped_s for each in seen.trial.record.flows)
    rates = seen.rates()
    last = rates[rates.index >= (1 - LATE_PART) * end]
    whole = float(last.to_numpy().sum())
    return 100 * float(last.sum().min()) / whole if whole else NAN


def long_of_fair(seen: TrialView) -> float:
    """Return the long flow's throughput in percent of its max–min share, half of the link."""
    return 100 * float(seen.flow("long")["throughput_mbps"]) / (seen.rate_mbit / 2)


def lot_utilisation(seen: TrialView) -> float:
    """Return the bottlenecks' mean utilisation, in percent."""
    cross = seen.without("long")["throughput_mbps"].mean()
    long = seen.flow("long")["throughput_mbps"]
    return 100 * float(cross + long) / seen.rate_mbit


def _shared(rates: pd.DataFrame) -> pd.DataFrame:
    """Select the seconds in which at least two flows ran."""
    return rates[rates.notna().sum(axis=1) > 1]


def _mean(values: Iterator[float]) -> float:
    finite = [each for each in values if not math.isnan(each)]
    return float(np.mean(finite)) if finite else NAN


SHORT, LONG = "short", "long"
HIGH = 0.99


def took_s(seen: TrialView, size: str) -> pd.Series:
    """Return the completion times of a class of sizes.

    A transfer that did not finish counts with the time until the flow's end, so that a variant that
    finishes less does not look faster.
    """
    of_size = seen.transfers[seen.transfers["size_class"] == size]
    begun_s = of_size["start_s"].fillna(of_size["due_s"])
    stops_s = {each.name: each.stopped_s for each in seen.trial.record.flows}
    ends_s = of_size["flow"].map(stops_s).astype(float)
    return of_size["completion_s"].astype(float).fillna(ends_s - begun_s)


def short_99_ms(seen: TrialView) -> float:
    """Return the 99th percentile of the completion times of short transfers."""
    durations = took_s(seen, SHORT)
    return 1e3 * float(durations.quantile(HIGH)) if len(durations) else NAN


def long_mean_s(seen: TrialView) -> float:
    """Return the mean completion time of long transfers; NaN if none is long."""
    return float(took_s(seen, LONG).mean())


def _mean_score(name: str, label: str, better: int, metric: str) -> Score:
    """Return a score that is the mean of a column of metrics.csv over the trial's flows."""
    return Score(name, label, better, lambda seen: seen.mean(metric))


def _utilisation(seen: TrialView) -> float:
    return 100 * float(seen.without("back")["throughput_mbps"].sum()) / seen.carried_mbit


def _losses(seen: TrialView) -> float:
    """Return the percentage of all flows' packets that were dropped."""
    sent = seen.flows["sent_packets"]
    return 100 * float((seen.flows["drop_rate"] * sent).sum() / sent.sum())


def _offered(seen: TrialView) -> float:
    """Return what all flows sent, retransmissions included, in percent of what the link carries."""
    sent_mbit = float(seen.flows["sent_packets"].sum()) * FRAME_BYTES * 8e-6
    return 100 * sent_mbit / (seen.carried_mbit * seen.measured_s)


def _call_score(
    name: str, label: str, metric: str, factor: float = 1.0, most: float = math.inf
) -> Score:
    """Return a score that is the mean of a column of metrics.csv over the trial's calls."""
    return Score(
        name, label, LESS, lambda seen: factor * float(seen.calls[metric].mean()), most=most
    )


def _taken(seen: TrialView) -> float:
    """Return the share of the flow whose receiver misbehaves, in percent."""
    rates = seen.flows["throughput_mbps"]
    return 100 * float(seen.flow("flow")["throughput_mbps"]) / float(rates.sum())


def _needless(seen: TrialView) -> float:
    """Return the percentage of all flows' packets that were sent again and not dropped before."""
    sent, again = seen.flows["sent_packets"], seen.flows["retransmitted"]
    dropped = (seen.flows["drop_rate"] * sent).round()  # packets
    return 100 * float((again - dropped).clip(lower=0).sum() / sent.sum())


SHARE_OF_LINK_STEP = 0.5  # percent of a link: less is no difference to anybody
UTILISATION = Score("utilisation", "link used (%)", MORE, _utilisation, SHARE_OF_LINK_STEP)
QUEUE_SCORE = _mean_score("queue_ms", "queueing delay (ms)", LESS, "queue_mean_ms")
QUEUE_95 = _mean_score("queue_95_ms", "queueing delay, 95 % (ms)", LESS, "queue_p95_ms")
DROPS_SCORE = Score("losses", "packets dropped (%)", LESS, _losses, most=100)
JAIN = Score(
    "jain_percent", "Jain's index (%)", MORE, lambda seen: 100 * seen.mean("jain"), most=100
)
GOODPUT_SCORE = Score(
    "goodput_percent",
    "goodput (% of the link)",
    MORE,
    lambda seen: 100 * float(seen.without("back")["goodput_mbps"].sum()) / seen.carried_mbit,
    SHARE_OF_LINK_STEP,
)
DELAY_95 = _mean_score("delay_95_ms", "one-way delay, 95 % (ms)", LESS, "owd_p95_ms")
OWN_GOODPUT = Score(
    "own_percent",
    "own goodput (% of the link)",
    MORE,
    lambda seen: 100 * float(seen.flow("flow")["goodput_mbps"]) / seen.rate_mbit,
    SHARE_OF_LINK_STEP,
)
OWN_QUEUE = Score(
    "own_queue_ms",
    "queueing delay (ms)",
    LESS,
    lambda seen: float(seen.flow("flow")["queue_mean_ms"]),
)
REVERSE_RTT = Score(
    "rtt_ms",
    "round trip (ms)",
    LESS,
    lambda seen: seen.mean("rtt_mean_ms", without="back"),
)

# what a victim has, whether more of it is better, and what a loss of it is called
HARMED = (
    ("throughput_mbps", MORE, "harm to throughput (%)"),
    ("queue_mean_ms", LESS, "harm to delay (%)"),
    ("drop_rate", LESS, "harm by losses (%)"),
)


def _harm(metric: str, better: int, label: str) -> Score:
    """Return a score of the harm that is done to a victim's number."""
    return Score(metric, label, LESS, lambda seen: float(seen.flow("victim")[metric]), harm=better)


RTT_FAIRNESS_SCORES = (JAIN, UTILISATION)
BUFFER_SIZING_SCORES = (UTILISATION, QUEUE_SCORE, DROPS_SCORE)
CONVERGENCE_SCORES = (
    Score("fair_after_s", "time to a fair share (s)", LESS, time_to_fair_s, 1.0),
    Score("jain_over_time", "Jain's index in seconds (%)", MORE, jain_over_time, most=100),
    Score("oscillation", "oscillation (%)", LESS, oscillation),
)
LATECOMER_SCORES = (
    Score("fair_after_s", "time to a fair share (s)", LESS, time_to_fair_s, 1.0),
    Score("lesser_share", "lesser share at last (%)", MORE, lesser_share, most=50),
)
INTRA_PROTOCOL_SCORES = (JAIN, QUEUE_SCORE, DROPS_SCORE)
PARKING_LOT_SCORES = (
    Score("long_of_fair", "long flow, of its fair share (%)", MORE, long_of_fair),
    Score("lot_utilisation", "links used (%)", MORE, lot_utilisation, SHARE_OF_LINK_STEP),
)
REVERSE_TRAFFIC_SCORES = (GOODPUT_SCORE, REVERSE_RTT)
COMPLETION_SCORES = (
    Score("short_99_ms", "short ones, 99 % (ms)", LESS, short_99_ms),
    Score("long_mean_s", "long ones, mean (s)", LESS, long_mean_s),
)
LOSSY_SCORES = (GOODPUT_SCORE, QUEUE_SCORE)
REORDERING_SCORES = (
    GOODPUT_SCORE,
    Score("needless", "sent again without a loss (%)", LESS, _needless, most=100),
)
COLLAPSE_SCORES = (
    GOODPUT_SCORE,
    Score("offered_percent", "sent (% of the link)", LESS, _offered),
)
LONG_DELAY_SCORES = (UTILISATION, QUEUE_SCORE, DROPS_SCORE)
AGGREGATION_SCORES = (UTILISATION, QUEUE_SCORE)
CALLS_SCORES = (
    _call_score("call_loss", "a call's datagrams lost (%)", "datagram_loss_rate", 100, 100),
    _call_score("call_delay_ms", "a call's one-way delay, 95 % (ms)", "owd_p95_ms"),
    _call_score("call_jitter_ms", "a call's jitter (ms)", "jitter_ms"),
)
POLICER_SCORES = (GOODPUT_SCORE, DROPS_SCORE, JAIN)
MISBEHAVING_RECEIVERS_SCORES = (
    Score("taken_percent", "share of the one that misbehaves (%)", LESS, _taken, most=100),
    Score(
        "victim_queue_ms",
        "the other's queueing delay (ms)",
        LESS,
        lambda seen: float(seen.flow("victim")["queue_mean_ms"]),
    ),
    DROPS_SCORE,
)
CELLULAR_SCORES = (UTILISATION, DELAY_95)
PATH_CHANGE_SCORES = (
    Score("settling_s", "time to the new equilibrium (s)", LESS, settling_s, 1.0),
    UTILISATION,
    QUEUE_SCORE,
)
ECN_SCORES = (OWN_GOODPUT, OWN_QUEUE, DROPS_SCORE)
AQM_SCORES = (GOODPUT_SCORE, QUEUE_SCORE, QUEUE_95, JAIN)
HARM_SCORES = tuple(_harm(*each) for each in HARMED)
