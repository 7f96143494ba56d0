"""GYS's claims and the test of each in words, written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.engine.answers import Claim, Paper
from analysis.claims.guo_yuan_sheng import gys_ecn, gys_four_senders, gys_one_flow

_single = partial(Claim, experiment="router-bottleneck")
_four = partial(Claim, experiment="router-fairness")

CLAIMS: tuple[Claim, ...] = (
    _single(
        id="GYS1.1",
        words="Throughput is about the bottleneck rate for all; BBR has the highest (above 1020 "
        "kbit/s), Reno the lowest (below 970).",
        tested="bfifo, to the receiver: frames at the receiver are within 5 % of 1 Mbit/s for each "
        "variant; BBR's goodput is above that of each other variant and above 1.020 Mbit/s; Reno's "
        "is below that of each other variant and below 0.970.",
        judge=gys_one_flow.throughput,
    ),
    _single(
        id="GYS1.2",
        words="Sender to router: throughput is alike, but Cubic's is lower than that of the other "
        "three.",
        tested="bfifo, to the router: the goodputs of Reno, Vegas and BBR are within 5 % of each "
        "other; Cubic's is below each of theirs by more than 2 %.",
        judge=gys_one_flow.to_the_router,
    ),
    _single(
        id="GYS1.3",
        words="The delay from sender to receiver is about 0.9 ms (BBR lowest, Vegas highest); from "
        "sender to router 0.48 to 0.52 ms, Vegas highest.",
        tested="Round-trip time of echo requests before anything else runs: to the receiver, "
        "Vegas's is above and BBR's below that of each other variant; to the router, Vegas's is "
        "above. The values depend on the machine and are not tested; the delay under load is shown "
        "beside them.",
        judge=gys_one_flow.idle_delay,
    ),
    _single(
        id="GYS2.1",
        words="With CoDel and ECN, throughput goes down for all but BBR, whose throughput goes up.",
        tested="To the receiver, CoDel with ECN against bfifo: goodput is lower for Reno, Cubic "
        "and Vegas and higher for BBR, by more than 2 %.",
        judge=gys_ecn.ecn_throughput,
    ),
    _single(
        id="GYS2.2",
        words="ECN clearly lowers the delay for Cubic, and hardly for the others.",
        tested="Ratio of the mean one-way delay under load with CoDel and ECN to that with bfifo: "
        "at most 0.8 for Cubic, within 0.8 to 1.2 for Reno, Vegas and BBR.",
        judge=gys_ecn.ecn_delay,
    ),
    _four(
        id="GYS3.1",
        words="Of four senders, BBR takes more than 60 %, and Cubic the least, below 10 %.",
        tested="bfifo, goodput over the trial: BBR's share is at least 60 %, Cubic's at most 10 % "
        "and below that of each other variant. The paper does not say which of its queues the "
        "router had; the shares with CoDel and ECN are shown beside them.",
        judge=gys_four_senders.shares,
    ),
    _four(
        id="GYS3.2",
        words="All fall at the beginning and are then stable, except BBR, which fluctuates at a "
        "higher level.",
        tested="bfifo, throughput in bins of 10 s: each flow's first bin is above the mean of its "
        "later ones, whose coefficient of variation is at most 20 % except for BBR; BBR's is above "
        "that of each other variant, and so is its level.",
        judge=gys_four_senders.shares_over_time,
    ),
)

PAPER = Paper("GYS", "Guo, Yuan, Sheng", "docs/papers/guo-yuan-sheng.md", CLAIMS)
