"""KS's claims and the test of each in words, written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.dumbbell import pair_judges
from analysis.claims.engine.answers import Claim, Paper
from analysis.claims.kapre_saxena import ks_load, ks_pairs, ks_queues

_load = partial(Claim, experiment="dumbbell-load", window="small")
_pairs = partial(Claim, experiment="dumbbell-pairs", window="small", where={"second": "n5-n6"})
_queues = partial(Claim, experiment="dumbbell-queues", where={"cbr_stop": "at-60"})

CLAIMS: tuple[Claim, ...] = (
    _load(
        id="KS1.1",
        words="At low CBR rates, Vegas's throughput is the lowest of the four.",
        tested="Mean throughput over CBR 1–6 Mbit/s: Vegas's is below Tahoe's, Reno's and "
        "NewReno's by more than 2 %.",
        judge=ks_load.vegas_at_low_load,
    ),
    _load(
        id="KS1.2",
        words="From CBR of about 7 Mbit/s on, the others fall suddenly and Vegas is highest.",
        tested="For Tahoe, Reno and NewReno, the largest fall from one load to the next at CBR "
        "7–10 is at least twice the largest before (a fall of less than 0.05 Mbit/s is counted as "
        "that much); Vegas's mean throughput over CBR 7–10 is above each of theirs.",
        judge=ks_load.sudden_fall,
    ),
    _load(
        id="KS1.3",
        words="Under congestion NewReno's throughput is above Reno's and Tahoe's.",
        tested="Mean throughput over CBR 7–10 Mbit/s: NewReno's is above each of the others by "
        "more than 2 %.",
        judge=ks_load.newreno_under_congestion,
    ),
    _load(
        id="KS1.4",
        words="Vegas has the best mean throughput and the lowest variance (t values with CBR "
        "first: 0.392, 0.307, 0.464).",
        tested="CBR first: Vegas's mean throughput over CBR 1–10 is above that of each other "
        "variant, and its standard deviation over these loads is below, seed by seed; the paper's "
        "own t-test over the ten loads is shown beside it.",
        judge=ks_load.vegas_best_and_steadiest,
    ),
    _load(
        id="KS1.5",
        words="Vegas has the lowest average latency, rises a little before congestion and never "
        "peaks; Reno's latency rises steeply just after congestion.",
        tested="By recovery latency, RTT and one-way delay: Vegas's mean over CBR 1–10 is below "
        "that of each other variant; its largest step from one load to the next is at most 10 % of "
        "its latency at CBR 1, while Reno's largest step at CBR 7–10 is at least that. Open if the "
        "three readings disagree.",
        judge=ks_load.vegas_latency,
    ),
    _load(
        id="KS1.6",
        words="Vegas has the lowest drop rate; it too rises steeply at the end.",
        tested="Mean drop rate over CBR 1–10: Vegas's is below that of each other variant; from "
        "CBR 8 to 10 it rises by at least twice as much as from 1 to 8.",
        judge=ks_load.vegas_drops,
    ),
    _load(
        id="KS1.7",
        words="With several losses in a window, Reno does about as badly as Tahoe.",
        tested="Mean throughput over CBR 7–10 Mbit/s: the ratio of Reno's to Tahoe's lies within "
        "0.9 to 1.1.",
        judge=ks_load.reno_as_tahoe,
    ),
    _pairs(
        id="KS2.1",
        words="Vegas/Vegas is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(pair_judges.fair, variant="vegas"),
    ),
    _pairs(
        id="KS2.2",
        words="Reno/Reno is fair.",
        tested="The first flow's mean share of both flows' throughput lies within 45 to 55 %.",
        judge=partial(pair_judges.fair, variant="reno"),
    ),
    _pairs(
        id="KS2.3",
        words="NewReno takes more than Reno.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point.",
        judge=partial(pair_judges.takes_more, winner="newreno", loser="reno"),
    ),
    _pairs(
        id="KS2.4",
        words="NewReno takes more than Vegas; at high CBR rates NewReno drops more than Vegas.",
        tested="NewReno's mean share over CBR 1–10 is above a half by more than 1 point; over CBR "
        "7–10, its drop rate is above that of Vegas in the same trials.",
        judge=partial(ks_pairs.more_and_drops_more, winner="newreno", loser="vegas"),
    ),
    _pairs(
        id="KS2.5",
        words="A variant is fairer to itself than to another.",
        tested="The mean distance of the share from a half, trial by trial, is less for Reno/Reno "
        "and Vegas/Vegas than for NewReno/Reno and NewReno/Vegas.",
        judge=ks_pairs.fairer_to_itself,
    ),
    _queues(
        id="KS3.1",
        words="CBR has the lower latency and the higher throughput.",
        tested="At 41–60 s, for Reno and SACK with DropTail and RED: CBR's one-way delay is below "
        "TCP's and its throughput above TCP's.",
        judge=ks_queues.cbr_ahead,
    ),
    _queues(
        id="KS3.2",
        words="Latency is higher with DropTail than with RED.",
        tested="For Reno and SACK, over the trial, by each of recovery latency, RTT and one-way "
        "delay: lower with RED. Open if the three readings disagree.",
        judge=ks_queues.droptail_slower,
    ),
    _queues(
        id="KS3.3",
        words="The ranking by throughput is SACK+RED, Reno+RED, SACK+DropTail, Reno+DropTail.",
        tested="TCP's throughput over the trial: each is above the next by more than 2 %; the "
        "first two may be equal (KS3.4).",
        judge=ks_queues.ranking,
    ),
    _queues(
        id="KS3.4",
        words="With RED, Reno is about equal to SACK.",
        tested="With RED, the ratio of Reno's throughput to SACK's lies within 0.95 to 1.05.",
        judge=ks_queues.reno_as_sack,
    ),
)

PAPER = Paper(
    "KS",
    "Kapre, Saxena",
    "experiments/kapre_saxena_joshi_hattikar/kapre-saxena.md",
    CLAIMS,
)
