"""The scores of each standard evaluation: one table, a row each.

A score is one number of a trial. What is better is said where it is beyond doubt; a score without
that (a share between two kinds of flows) is shown and not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analysis.evaluation import path_scores, transfer_scores
from analysis.evaluation import sharing_scores as sharing
from analysis.evaluation.seen_trial import SeenTrial

MORE, LESS = 1, -1


@dataclass(frozen=True)
class Score:
    """A number of a trial: its column, its words with the unit, and which way is better."""

    name: str
    words: str
    better: int
    of: Callable[[SeenTrial], float]
    step: float = 0.0  # of its scale: a smaller difference is none, even if all seeds give it


def _mean(name: str, words: str, better: int, metric: str, factor: float = 1.0) -> Score:
    """The mean over the trial's flows of a column of metrics.csv."""
    return Score(name, words, better, lambda seen: factor * seen.mean(metric))


def _utilisation(seen: SeenTrial) -> float:
    return 100 * float(seen.without("back")["throughput_mbps"].sum()) / seen.carried_mbit


def _losses(seen: SeenTrial) -> float:
    """Of all flows' packets."""
    sent = seen.flows["sent_packets"]
    return 100 * float((seen.flows["drop_rate"] * sent).sum() / sent.sum())


def _needless(seen: SeenTrial) -> float:
    """Of all flows' packets: what was sent again and not dropped before."""
    sent, again = seen.flows["sent_packets"], seen.flows["retransmitted"]
    dropped = (seen.flows["drop_rate"] * sent).round()  # packets
    return 100 * float((again - dropped).clip(lower=0).sum() / sent.sum())


UTILISATION = Score("utilisation", "link used (%)", MORE, _utilisation)
QUEUE = _mean("queue_ms", "queueing delay (ms)", LESS, "queue_mean_ms")
QUEUE_95 = _mean("queue_95_ms", "queueing delay, 95 % (ms)", LESS, "queue_p95_ms")
LOSSES = Score("losses", "packets dropped (%)", LESS, _losses)
JAIN = _mean("jain_percent", "Jain's index (%)", MORE, "jain", 100)
GOODPUT = Score(
    "goodput_percent",
    "goodput (% of the link)",
    MORE,
    lambda seen: 100 * float(seen.without("back")["goodput_mbps"].sum()) / seen.carried_mbit,
)
DELAY_95 = _mean("delay_95_ms", "one-way delay, 95 % (ms)", LESS, "owd_p95_ms")
OWN_GOODPUT = Score(
    "own_percent",
    "own goodput (% of the link)",
    MORE,
    lambda seen: 100 * float(seen.flow("flow")["goodput_mbps"]) / seen.rate_mbit,
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


def _harm(metric: str, _better: int, words: str) -> Score:
    """A victim's own number, of which `outcome_rows.py` makes the harm."""
    return Score(metric, words, LESS, lambda seen: float(seen.flow("victim")[metric]))


SCORES: Mapping[str, tuple[Score, ...]] = {
    "rtt-fairness": (JAIN, UTILISATION),
    "buffer-sizing": (UTILISATION, QUEUE, LOSSES),
    "convergence": (
        Score("fair_after_s", "time to a fair share (s)", LESS, sharing.time_to_fair_s, 1.0),
        Score("jain_over_time", "Jain's index in seconds (%)", MORE, sharing.jain_over_time),
        Score("oscillation", "oscillation (%)", LESS, sharing.oscillation),
    ),
    "latecomer": (
        Score("fair_after_s", "time to a fair share (s)", LESS, sharing.time_to_fair_s, 1.0),
        Score("lesser_share", "lesser share at last (%)", MORE, sharing.lesser_share),
    ),
    "intra-protocol": (JAIN, QUEUE, LOSSES),
    "parking-lot": (
        Score("long_of_fair", "long flow, of its fair share (%)", MORE, sharing.long_of_fair),
        Score("lot_utilisation", "links used (%)", MORE, sharing.lot_utilisation),
    ),
    "reverse-traffic": (GOODPUT, REVERSE_RTT),
    "completion": (
        Score("short_99_ms", "short ones, 99 % (ms)", LESS, transfer_scores.short_99_ms),
        Score("long_mean_s", "long ones, mean (s)", LESS, transfer_scores.long_mean_s),
    ),
    "lossy": (GOODPUT, QUEUE),
    "reordering": (
        GOODPUT,
        Score("needless", "sent again without a loss (%)", LESS, _needless),
    ),
    "cellular": (UTILISATION, DELAY_95),
    "path-change": (
        Score("settling_s", "time to the new equilibrium (s)", LESS, path_scores.settling_s, 1.0),
        UTILISATION,
        QUEUE,
    ),
    "ecn": (OWN_GOODPUT, OWN_QUEUE, LOSSES),
    "aqm": (GOODPUT, QUEUE, QUEUE_95, JAIN),
    "harm": tuple(_harm(*each) for each in HARMED),
}
