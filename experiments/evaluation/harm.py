"""What a flow does to another one: each variant beside each, and beside itself.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
    sender2 ──┘          └── receiver2

Harm (Ware and others, 2019) is what the victim loses against the same trial with two of its own
kind: of its throughput, of its low delay, of its low losses; 0 is none, 1 is all.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario


def scenario(*, variant: str, victim: str, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    return settings.trial(
        "harm",
        (variant, "on", victim),
        settings.dumbbell(settings.buffer(settings.FIFO), 2),
        (settings.flow("one", 1, variant), settings.flow("victim", 2, victim)),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="harm",
    paper="Ware 2019; RFC 9743, 5.2.1",
    about="each variant beside each: the harm in throughput, delay and losses",
    axes={
        "variant": settings.VARIANTS,
        "victim": settings.VARIANTS,
        "duration_s": (40.0,),
    },
    build=scenario,
    quick={"duration_s": (8.0,)},
    compares=("variant",),
)
