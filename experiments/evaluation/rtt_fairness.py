"""Two flows whose round trips differ: 20 ms, and up to sixteen times that.

    sender1 ── left ══ right ── receiver1     20 ms
    sender2 ──┘          └── receiver2        20 ms × ratio

`beside=itself`: both flows have the variant. `beside=cubic`: the variant has the long round trip,
and Cubic the short one. The buffer is one bandwidth–delay product of the longer round trip.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario

SHORT_MS = 20.0


def scenario(
    *, variant: str, queue: str, ratio: float, beside: str, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    other = variant if beside == "itself" else beside
    return settings.trial(
        "rtt-fairness",
        (variant, queue, f"1to{ratio:g}", beside),
        settings.dumbbell(settings.buffer(queue), 2, (SHORT_MS, ratio * SHORT_MS)),
        (settings.flow("short", 1, other), settings.flow("long", 2, variant)),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="rtt-fairness",
    paper="RFC 5166, 2.3",
    about="two flows with round trips 1:1 to 1:16, beside themselves and beside Cubic",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "ratio": (1.0, 2.0, 4.0, 8.0, 16.0),
        "beside": ("itself", "cubic"),
        "duration_s": (40.0,),
    },
    build=scenario,
    quick={"ratio": (1.0, 8.0), "beside": ("itself",), "duration_s": (10.0,)},
    compares=("variant", "queue"),
)
