"""GYS's claims, and in words what is tested of each. Written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.engine.answers import Claim, Paper
from analysis.claims.guo_yuan_sheng import gys_ecn, gys_four_senders, gys_one_flow

_single = partial(Claim, experiment="router-bottleneck")
_four = partial(Claim, experiment="router-fairness")

CLAIMS: tuple[Claim, ...] = (
    _single(
        id="GYS1.1",
        words="Throughput is about the bottleneck rate for all; BBR highest (above 1020 kbit/s), "
        "Reno lowest (below 970).",
        tested="bfifo, to the receiver: frames at the receiver within 5 % of 1 Mbit/s for each; "
        "BBR's goodput above each other's and above 1.020 Mbit/s; Reno's below each other's and "
        "below 0.970.",
        judge=gys_one_flow.throughput,
    ),
    _single(
        id="GYS1.2",
        words="Sender to router: throughput is alike, Cubic lower than the other three.",
        tested="bfifo, to the router: goodputs of Reno, Vegas and BBR within 5 % of each other; "
        "Cubic's below each of theirs by more than 2 %.",
        judge=gys_one_flow.to_the_router,
    ),
    _single(
        id="GYS1.3",
        words="Delay sender to receiver is about 0.9 ms (BBR lowest, Vegas highest); sender to "
        "router 0.48 to 0.52 ms, Vegas highest.",
        tested="Round trip of echo requests before anything runs: to the receiver Vegas above and "
        "BBR below each other one, to the router Vegas above. The amounts are the machine's and "
        "not tested; the delay under load stands beside.",
        judge=gys_one_flow.idle_delay,
    ),
    _single(
        id="GYS2.1",
        words="With CoDel and ECN throughput goes down for all but BBR, whose throughput goes up.",
        tested="To the receiver, CoDel with ECN against bfifo: goodput lower for Reno, Cubic and "
        "Vegas, higher for BBR, by more than 2 %.",
        judge=gys_ecn.ecn_throughput,
    ),
    _single(
        id="GYS2.2",
        words="ECN lowers the delay clearly for Cubic and hardly for the others.",
        tested="Mean one-way delay under load, CoDel with ECN over bfifo: at most 0.8 for Cubic, "
        "within 0.8 to 1.2 for Reno, Vegas and BBR.",
        judge=gys_ecn.ecn_delay,
    ),
    _four(
        id="GYS3.1",
        words="With four senders BBR takes more than 60 %; Cubic least, below 10 %.",
        tested="bfifo, goodput over the trial: BBR's share at least 60 %, Cubic's at most 10 % and "
        "below each other one's. The paper does not say which of its queues the router had; shares "
        "with CoDel and ECN stand beside.",
        judge=gys_four_senders.shares,
    ),
    _four(
        id="GYS3.2",
        words="All fall at the beginning and are then stable, except BBR, which fluctuates at a "
        "higher level.",
        tested="bfifo, throughput in bins of 10 s: each flow's first above the mean of its later "
        "ones; their coefficient of variation at most 20 % but for BBR's, which is above each "
        "other's, as is its level.",
        judge=gys_four_senders.shares_over_time,
    ),
)

PAPER = Paper("GYS", "Guo, Yuan, Sheng", "docs/papers/guo-yuan-sheng.md", CLAIMS)
