"""PMW's claims and the test of each in words, written before there was data."""

from __future__ import annotations

from functools import partial

from analysis.claims.engine.answers import Claim, Paper
from analysis.claims.parvez_mahanti_williamson import pmw_background, pmw_events

_events = partial(Claim, experiment="newreno-models")
_traffic = partial(Claim, experiment="newreno-background")

CLAIMS: tuple[Claim, ...] = (
    _events(
        id="PMW1",
        words="The models are within 0.15 to 3.11 % (p = 0.05 %) and 0.20 to 6.29 % (0.10 %) of "
        "the measurement for Slow-but-Steady, 0.45 to 3.34 % and 0.74 to 5.54 % for Impatient; m* "
        "= 4; Slow-but-Steady is better up to m = 25 and 20, Impatient from 26 and 21 on.",
        tested="Events of m consecutive segments, with a timer of 200 ms like ns-2's. For each p "
        "and form, the largest error of the model over m, computed from the mean over seeds, given "
        "the measured p, m, RTT and RTO: at most the paper's. The first m from which the two forms "
        "differ by more than 2 %: 4. The m at which a straight line through the difference, from "
        "10 on, crosses zero: within 2 of 25.5 and 20.5. Events begin at random; the same is "
        "tested for evenly spaced events, where those were run (added after the first trials, "
        "which had shown that the paper's errors are those of such events).",
        judge=pmw_events.accuracy,
    ),
    _traffic(
        id="PMW2",
        words="The model of Slow-but-Steady is below the measurement by 9.78 % on average for 4 to "
        "200 flows (RED: 7.07 %), and above it by 20.64 % at 256. A loss event has 2.11 to 4.16 "
        "drops for Slow-but-Steady, 1.93 to 2.93 for Impatient; with RED 1.22 (4 flows) to 1.40 "
        "(256).",
        tested="Given the measured p, m and RTT: the mean magnitude of the error over 4 to 192 "
        "sessions is between 4.78 and 14.78 %, with RED between 2.07 and 12.07 %; at 256, the "
        "model is at least 10 % above. Losses per event, as the mean over 4 to 192 sessions, are "
        "within the paper's ranges. With RED, over all, 1.22 to 1.40: shown, but left open, since "
        "Linux's RED drops all above its upper threshold, and ns-2's is gentle.",
        judge=pmw_background.accuracy,
    ),
    _traffic(
        id="PMW3",
        words="Slow-but-Steady is ahead of Impatient by about 13.59 % for 4 to 64 background "
        "flows and by 5.54 % for 64 to 256; RED narrows the difference.",
        tested="How far Slow-but-Steady's goodput is ahead of Impatient's, by seed the mean over "
        "the numbers of sessions: above zero in both ranges; 8 to 19 % for 4 to 64, and less for "
        "64 to 256 than for 4 to 64; with RED less than without, over 4 to 64.",
        judge=pmw_background.ahead,
    ),
    _events(
        id="PMW4",
        words="The forms are equal for m up to 4, Slow-but-Steady is better from there to m_t = 27 "
        "at p = 0.05 % and 21 at 0.10 %, and Impatient from there to W − 3.",
        tested="By the trials' goodput, for each p: equal within 2 % for m below 4; "
        "Slow-but-Steady is above from 5 to m_t − 3; Impatient is above from m_t + 3 on. And by "
        "the equations, with the measured RTT and RTO: m_t is within 1 of the paper's.",
        judge=pmw_events.regions,
    ),
)

PAPER = Paper(
    "PMW", "Parvez, Mahanti, Williamson", "experiments/parvez_mahanti_williamson/README.md", CLAIMS
)
