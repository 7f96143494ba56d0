#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Parvez, Mahanti, Williamson, figure 2: two forms of NewReno under loss events (p, m).

    slow-but-steady:  sender1 ──┐                   ┌──╳── receiver1
                                ├─ left ═════ right ┤
    impatient:        sender2 ──┘                   └──╳── receiver2

45 Mbit/s, which neither flow fills, and 70 ms. On each receiver's access link, a segment of new
data begins a loss event with probability p, in which m segments in a row are lost. The throughput
that the models predict from p, m, the round-trip time and the retransmission timer is compared with
that of the stacks. A seed draws the events, and within 5 % of the paper's the links' delays.
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
# Several times the largest window between two events, and two of them are less than path and queue
# hold: a first slow start that filled the queue would be repaired for a minute, a segment each
# round trip.
WINDOW_BYTES = 500_000
# The route makes the timer add this to the smoothed round-trip time of 70 ms, for 200 ms: ns-2's
# minimum, with which m* is 4. Linux's own is 200 ms more than the round-trip time, and m* is 5.
MODELS_RTO_MIN_MS = 130

# The paper's dropper is a Bernoulli process; the cycles of its models are all alike.
DROPPERS = {"random": LossEvents(0, 0), "even": LossEvents(0, 0, even=True)}
# The paper has every m up to 40 and 35. These are both sides of m*, of where the forms cross, and
# the most that a window bears.
M_OF_P = {0.05: (1, 3, 4, 6, 10, 16, 23, 30, 35, 40), 0.1: (1, 3, 4, 6, 10, 16, 23, 30, 35)}


def scenario(
    *, p_percent: float, m: float, dropper: str, profile: str, duration_s: float, seed: int
) -> Scenario:
    """Build one point of the figure, both forms at once."""
    events = dataclasses.replace(DROPPERS[dropper], rate=p_percent / 100, losses=int(m))
    return Scenario(
        experiment="newreno-models",
        label=f"p{p_percent:g}-m{m:g}-{dropper}",
        network=dumbbell(
            LinkSettings(MODELS_MBIT, queue=Queue("bfifo", limit_bdp=4), delay_ms=MIDDLE_MS),
            pairs=len(newreno_settings.FORMS),
            access=LinkSettings(delay_ms=ACCESS_MS),
        ),
        flows=newreno_settings.flows(
            MODELS_RTO_MIN_MS, WINDOW_BYTES, loss=Loss(events=events, dice="both forms")
        ),
        duration_s=duration_s,
        measure_from_s=newreno_settings.WARM_UP * duration_s,
        seed=seed,
        drawn_share=newreno_settings.NEWRENO_DRAWN_SHARE,
        profile=Profile(profile),
        captures=newreno_settings.CAPTURES,
        sample_interval_ms=newreno_settings.NEWRENO_SAMPLE_MS,
    )


def _of_p(p_percent: float) -> Axes:
    return {"p_percent": (p_percent,), "m": tuple(map(float, M_OF_P[p_percent]))}


EXPERIMENT = Experiment(
    name="newreno-models",
    paper="Parvez, Mahanti, Williamson figure 2",
    about="NewReno's two forms under loss events (p, m), beside the models of their throughput",
    axes={
        "p_percent": tuple(M_OF_P),
        "m": tuple(map(float, M_OF_P[0.05])),
        "dropper": tuple(DROPPERS),
        "profile": ("ns2",),
        "duration_s": (100.0,),
    },
    parts=tuple(map(_of_p, M_OF_P)),
    build=scenario,
    quick={
        "p_percent": (0.1,),
        "m": (1.0, 3.0, 4.0, 10.0, 23.0, 35.0),
        "dropper": ("random",),
        "duration_s": (60.0,),
    },
    figures=on_demand("experiments.parvez_mahanti_williamson.figures", "event_figures"),
    tables=on_demand("experiments.parvez_mahanti_williamson.tables", "model_errors"),
    claims=on_demand("experiments.parvez_mahanti_williamson.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
