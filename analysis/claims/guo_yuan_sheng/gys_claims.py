"""GYS's claims and the test of each in words, written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.engine.answers import Claim, Paper, Reading
from analysis.claims.guo_yuan_sheng import gys_ecn, gys_four_senders, gys_one_flow

_single = partial(Claim, experiment="router-bottleneck")
_four = partial(Claim, experiment="router-fairness")

AS_SET, ASKED = "ECN as set", "ECN asked for"
WITHOUT = "The paper's commands leave tcp_ecn as it is: no sender asks for ECN, and CoDel drops."
ECN_READINGS = (
    Reading(AS_SET, WITHOUT, {"queue": ("bfifo", "codel")}),
    Reading(ASKED, "Senders ask for ECN, and CoDel marks.", {"queue": ("bfifo", "codel-ecn")}),
)
STARTS = {
    0.1: "The four start within a tenth of a second.",
    1.0: "The four start within a second.",
}
# the paper does not say which of its queues the router had, nor what *simultaneously* is
SHARE_READINGS = tuple(
    Reading(
        f"{queue}, {ecn}starts within {within:g} s",
        f"{words} {start}",
        {"queue": queue, "within_s": within},
    )
    for queue, ecn, words in (
        ("bfifo", "", "The router has bfifo."),
        ("codel", f"{AS_SET}, ", f"The router has CoDel. {WITHOUT}"),
        ("codel-ecn", f"{ASKED}, ", "The router has CoDel; senders ask for ECN."),
    )
    for within, start in STARTS.items()
)

CLAIMS: tuple[Claim, ...] = (
    _single(
        id="GYS1.1",
        words="Throughput is about the bottleneck rate for all; BBR highest (above 1020 kbit/s), "
        "Reno lowest (below 970).",
        tested="bfifo, to the receiver: frames at the receiver within 5 % of 1 Mbit/s for each; "
        "BBR's goodput above each other's and above 1.020 Mbit/s; Reno's below each other's and "
        "below 0.970: of what arrived, and of what iperf3's client says. Open where the two "
        "disagree.",
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
        words="With CoDel and ECN throughput goes down for all but BBR, whose throughput goes up.",
        tested="To the receiver, CoDel against bfifo: goodput lower for Reno, Cubic and "
        "Vegas, higher for BBR, by more than 2 %.",
        judge=gys_ecn.ecn_throughput,
        readings=ECN_READINGS,
    ),
    _single(
        id="GYS2.2",
        words="ECN lowers the delay clearly for Cubic and hardly for the others.",
        tested="Mean one-way delay under load, CoDel over bfifo: at most 0.8 for Cubic, "
        "within 0.8 to 1.2 for Reno, Vegas and BBR.",
        judge=gys_ecn.ecn_delay,
        readings=ECN_READINGS,
    ),
    _four(
        id="GYS3.1",
        words="With four senders BBR takes more than 60 %; Cubic least, below 10 %.",
        tested="Goodput over the trial: BBR's share at least 60 %, Cubic's at most 10 % and below "
        "each other one's.",
        judge=gys_four_senders.shares,
        readings=SHARE_READINGS,
    ),
    _four(
        id="GYS3.2",
        words="All fall at the beginning and are then stable, except BBR, which fluctuates at a "
        "higher level.",
        tested="Throughput in bins of 10 s: each flow's first above the mean of its later "
        "ones; their coefficient of variation at most 20 % but for BBR's, which is above each "
        "other's, as is its level.",
        judge=gys_four_senders.shares_over_time,
        readings=SHARE_READINGS,
    ),
)

PAPER = Paper("GYS", "Guo, Yuan, Sheng", "experiments/guo_yuan_sheng/README.md", CLAIMS)
