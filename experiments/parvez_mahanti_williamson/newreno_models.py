#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Parvez, Mahanti, Williamson, figure 2: two forms of NewReno under loss events (p, m).

    slow-but-steady:  sender1 ──┐                   ┌──╳── receiver1
                                ├─ left ═════ right ┤
    impatient:        sender2 ──┘                   └──╳── receiver2

45 Mbit/s, which neither flow fills, and 70 ms. On each receiver's access link, a segment of new
data begins a loss event with probability p, in which m segments of the window are lost. The
throughput that the models predict from p, m, the round-trip time and the retransmission timer is
compared with that of the stacks.
"""

from __future__ import annotations

import dataclasses
import sys

from experiments.parvez_mahanti_williamson import newreno_settings
from testbed.scenario.experiment import Axes, Experiment, on_demand
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue

MODELS_MBIT = 45.0
ACCESS_MS, MIDDLE_MS = 5.0, 25.0  # one way: a round-trip time of 70 ms
# More than path and queue hold (2 MB), and no more than the receiver's buffer can hold of segments
# that wait for a lost one, where 1000 bytes of payload take 2304 of its 6.3 MB: with 4 MB, it threw
# segments away in some first recoveries.
WINDOW_BYTES = 2_500_000

# The paper does not say how its dropper works: candidates, to see which one fits its figures.
DROPPERS = {
    "consecutive": LossEvents(0, 0),  # m segments of new data in a row, events one at a time
    "spaced": LossEvents(0, 0, spacing=2),
    "any-time": LossEvents(0, 0, one_at_a_time=False),
    "even": LossEvents(0, 0, even=True),  # not random: equal cycles, as in the models
}
# Random events, as the paper defines p; and those with which its models' errors are reproduced.
PAPER_DROPPERS = ("consecutive", "even")
# The minimum that the route makes the timer add to the smoothed round-trip time of 70 ms: for a
# timer of 200 ms, which is ns-2's minimum, or of 270 ms, which is Linux's own.
TIMERS = {"ns2": 130, "linux": 200}
FEW_LOSSES = (1, 3, 5, 6, 10, 20, 30)  # losses per event, for the additional droppers and timers
M_OF_P = {0.05: range(1, 41), 0.1: range(1, 36)}  # p in percent


def scenario(
    *,
    p_percent: float,
    m: float,
    dropper: str,
    timer: str,
    profile: str,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Build one point of the figure, both forms at once."""
    events = dataclasses.replace(DROPPERS[dropper], rate=p_percent / 100, losses=int(m))
    return Scenario(
        experiment="newreno-models",
        label=f"p{p_percent:g}-m{m:g}-{dropper}-{timer}timer",
        network=dumbbell(
            LinkSettings(MODELS_MBIT, queue=Queue("bfifo", limit_bdp=4), delay_ms=MIDDLE_MS),
            pairs=len(newreno_settings.FORMS),
            access=LinkSettings(delay_ms=ACCESS_MS),
        ),
        flows=newreno_settings.flows(
            TIMERS[timer], WINDOW_BYTES, loss=Loss(events=events, dice="both forms")
        ),
        duration_s=duration_s,
        measure_from_s=newreno_settings.WARM_UP * duration_s,
        seed=seed,
        profile=Profile(profile),
        captures=newreno_settings.CAPTURES,
        sample_interval_ms=newreno_settings.NEWRENO_SAMPLE_MS,
    )


def _parts(p_percent: float) -> tuple[Axes, ...]:
    """Return the paper's points, and a few with the other timer and the other droppers."""
    p, few = (p_percent,), tuple(float(m) for m in M_OF_P[p_percent] if m in FEW_LOSSES)
    return (
        {"p_percent": p, "m": tuple(map(float, M_OF_P[p_percent])), "dropper": PAPER_DROPPERS},
        {"p_percent": p, "m": few, "timer": ("linux",)},
        {"p_percent": p, "m": few, "dropper": tuple(DROPPERS)},
    )


EXPERIMENT = Experiment(
    name="newreno-models",
    paper="Parvez, Mahanti, Williamson figure 2",
    about="NewReno's two forms under loss events (p, m), beside the models of their throughput",
    axes={
        "p_percent": tuple(M_OF_P),
        "m": tuple(map(float, M_OF_P[0.05])),
        "dropper": ("consecutive",),
        "timer": ("ns2",),
        "profile": ("ns2",),
        "duration_s": (250.0,),
    },
    parts=tuple(part for p in M_OF_P for part in _parts(p)),
    build=scenario,
    quick={
        "p_percent": (0.1,),
        "m": (1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 30.0),
        "dropper": ("consecutive",),
        "timer": ("ns2",),
        "duration_s": (100.0,),
    },
    figures=on_demand("experiments.parvez_mahanti_williamson.figures", "event_figures"),
    tables=on_demand("experiments.parvez_mahanti_williamson.tables", "model_errors"),
    claims=on_demand("experiments.parvez_mahanti_williamson.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
