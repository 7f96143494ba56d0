"""Flows of one variant among themselves: 2 to 64 of them.

four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario

MOST_PAIRS = 4


def scenario(*, variant: str, queue: str, flows: float, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    pairs = min(MOST_PAIRS, round(flows))
    return settings.trial(
        "intra-protocol",
        (variant, queue, f"{flows:g}"),
        settings.dumbbell(settings.buffer(queue), pairs),
        settings.alike(variant, round(flows), pairs),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="intra-protocol",
    paper="RFC 9743, 5.1.4",
    about="2 to 64 flows of one variant: fairness, delay, losses",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "flows": (2.0, 4.0, 16.0, 64.0),
        "duration_s": (24.0,),
    },
    build=scenario,
    quick={"flows": (4.0,), "duration_s": (10.0,)},
    compares=("variant", "queue"),
)
