"""Losses that are no sign of congestion: 0.001 to 5 % of the packets, singly and in bursts.

sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Scenario


def losses(percent: float, burst: float) -> Loss:
    """That share of the packets, in events of so many packets in a row; the same dice for all."""
    events = LossEvents(percent / 100 / burst, losses=round(burst), one_at_a_time=False)
    return Loss(events, spare_retransmissions=False, dice="lossy")


def scenario(
    *, variant: str, loss_percent: float, burst: float, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    lossy = dataclasses.replace(settings.flow("tcp", 1, variant), loss=losses(loss_percent, burst))
    return settings.trial(
        "lossy",
        (variant, f"{loss_percent:g}pc", f"burst{burst:g}"),
        settings.dumbbell(settings.buffer(settings.FIFO), 1),
        (lossy,),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="lossy",
    paper="RFC 9743, 6.4",
    about="random losses of 0.001 to 5 %, singly and in bursts, beside models of the throughput",
    axes={
        "variant": settings.VARIANTS,
        "loss_percent": (0.001, 0.01, 0.1, 1.0, 5.0),
        "burst": (1.0, 4.0),
        "duration_s": (40.0,),
    },
    build=scenario,
    quick={"loss_percent": (0.1, 2.0), "burst": (1.0,), "duration_s": (10.0,)},
    compares=("variant",),
)
