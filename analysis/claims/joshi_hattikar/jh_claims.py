"""JH's claims and the test of each in words, written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.dumbbell import pair_judges
from analysis.claims.engine.answers import Claim, Paper, Reading
from analysis.claims.joshi_hattikar import jh_load, jh_pairs, jh_queues

_load = partial(Claim, experiment="dumbbell-load", window="large")
# JH contradict themselves, or can be taken in two ways
SECOND = (
    Reading(
        "second TCP N5–N6",
        "The second TCP goes from N5 to N6, as in JH's list of nodes.",
        {"second": "n5-n6"},
    ),
    Reading(
        "second TCP N2–N3",
        "The second TCP goes from N2 to N3, as in JH's text.",
        {"second": "n2-n3"},
    ),
)
STOP = (
    Reading(
        "CBR 40–60 s",
        'CBR "is then stopped after 60 seconds": at second 60.',
        {"cbr_stop": "at-60"},
    ),
    Reading(
        "CBR 40–100 s",
        'CBR "is then stopped after 60 seconds": having run for so long.',
        {"cbr_stop": "for-60"},
    ),
)
_pairs = partial(Claim, experiment="dumbbell-pairs", window="large", readings=SECOND)
_queues = partial(Claim, experiment="dumbbell-queues", readings=STOP)

CLAIMS: tuple[Claim, ...] = (
    _load(
        id="JH1.1",
        words="Vegas's throughput is above that of all others at every CBR rate; NewReno is next.",
        tested="At each of CBR 1–10, Vegas's throughput is above Tahoe's, Reno's and NewReno's by "
        "more than 2 %; NewReno's mean over the loads is above Reno's and Tahoe's.",
        judge=jh_load.vegas_above_all,
    ),
    _load(
        id="JH1.2",
        words="Reno and NewReno are alike at low CBR rates; NewReno is ahead as CBR grows.",
        tested="Mean throughput over CBR 1–6: the ratio of NewReno's to Reno's lies within 0.95 to "
        "1.05; over CBR 7–10, NewReno's is above Reno's by more than 2 %.",
        judge=jh_load.newreno_and_reno,
    ),
    _load(
        id="JH1.3",
        words="Vegas's and NewReno's throughput falls linearly with CBR; Reno's does not.",
        tested="A straight line through CBR 1–10: R² at least 0.98 and a bend of at most 10 % of "
        "the range for Vegas and NewReno, and not both for Reno.",
        judge=jh_load.linear_fall,
    ),
    _load(
        id="JH1.4",
        words="Vegas's latency is lowest for most CBR rates.",
        tested="By recovery latency, RTT and one-way delay: the fraction of the loads at which "
        "Vegas's is the lowest of the four is above a half (0.55, six of ten). Open if the three "
        "readings disagree.",
        judge=jh_load.vegas_latency_at_most_loads,
    ),
    _load(
        id="JH1.5",
        words="Vegas's drop rate is lowest over the whole range; at 9 Mbit/s Tahoe, Reno and "
        "NewReno rise a lot and Vegas very little.",
        tested="At each of CBR 1–10, Vegas's drop rate is below or equal to that of each other "
        "variant; from CBR 8 to 9, the rate of each other variant rises by more than twice as much "
        "as Vegas's.",
        judge=jh_load.vegas_drops_everywhere,
    ),
    _pairs(
        id="JH2.1",
        words="Vegas/Vegas is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(pair_judges.fair, variant="vegas"),
    ),
    _pairs(
        id="JH2.2",
        words="Reno/Reno is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(pair_judges.fair, variant="reno"),
    ),
    _pairs(
        id="JH2.3",
        words="NewReno always takes more than Reno.",
        tested="At each of CBR 1–10, NewReno's share is above a half by more than 1 point.",
        judge=partial(jh_pairs.always_takes_more, winner="newreno", loser="reno"),
    ),
    _pairs(
        id="JH2.4",
        words="NewReno takes more than Vegas.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point.",
        judge=partial(pair_judges.takes_more, winner="newreno", loser="vegas"),
    ),
    _queues(
        id="JH3.1",
        words="TCP is at its maximum before CBR starts; then it drops and oscillates between 6 and "
        "10 Mbit/s; SACK recovers faster.",
        tested="DropTail, Reno and SACK: throughput at 10–40 s above that beside CBR; more than "
        "half of the seconds beside it between 6 and 10 Mbit/s; at 40–45 s SACK above Reno.",
        judge=jh_queues.over_time,
    ),
    _queues(
        id="JH3.2",
        words="Drop rates: Reno 0.00154448 (DropTail), 0.00061112 (RED); SACK 0.00160811, "
        "0.000616975.",
        tested="TCP's drop rate over the trial lies within 25 % of each of the four.",
        judge=jh_queues.printed_drop_rates,
    ),
    _queues(
        id="JH3.3",
        words="Latency: Reno 0.0655081 s (DropTail), 0.065285 s (RED); SACK 0.0658671, 0.0651426.",
        tested="By one of recovery latency, RTT and one-way delay, the same one for all, TCP's "
        "mean over the trial lies within 2 % of each of the four.",
        judge=jh_queues.printed_latencies,
    ),
    _queues(
        id="JH3.4",
        words="Drop rate and latency are lowest with RED for both variants.",
        tested="For Reno and SACK, the drop rate is lower with RED than with DropTail, and so is "
        "the latency, by each of the three readings. Open if they disagree.",
        judge=jh_queues.red_least,
    ),
    _queues(
        id="JH3.5",
        words="SACK+RED's throughput is steady and above DropTail's.",
        tested="SACK with RED: the coefficient of variation in bins of 1 s is at most 10 % at "
        "10–40 s and at 41–60 s; its throughput over the trial is above SACK's with DropTail by "
        "more than 2 %.",
        judge=jh_queues.steady_with_red,
    ),
)

PAPER = Paper(
    "JH",
    "Joshi, Hattikar",
    "experiments/kapre_saxena_joshi_hattikar/joshi-hattikar.md",
    CLAIMS,
)
