"""A flow that comes when another has the link to itself.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
    sender2 ──┘          └── receiver2

The variant comes late: after a third of the trial, to another flow of the variant or to Cubic.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario

LATE = 1 / 3  # of the trial


def scenario(*, variant: str, queue: str, beside: str, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    other = variant if beside == "itself" else beside
    return settings.trial(
        "latecomer",
        (variant, queue, beside),
        settings.dumbbell(settings.buffer(queue), 2),
        (
            settings.flow("first", 1, other),
            settings.flow("late", 2, variant, round(LATE * duration_s, 1)),
        ),
        duration_s,
        seed,
        settling=0.0,
    )


EXPERIMENT = Experiment(
    name="latecomer",
    paper="RFC 5166, 2.3",
    about="a flow that comes to a full link: its share, and when it has it",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "beside": ("itself", "cubic"),
        "duration_s": (45.0,),
    },
    build=scenario,
    quick={"beside": ("itself",), "duration_s": (15.0,)},
    compares=("variant", "queue"),
)
