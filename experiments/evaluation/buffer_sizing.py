"""How much buffer is enough: 0.05 to 8 bandwidth–delay products for 1 to 64 flows.

four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario

MOST_PAIRS = 4


def scenario(
    *, variant: str, buffer_bdp: float, flows: float, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    pairs = min(MOST_PAIRS, round(flows))
    return settings.trial(
        "buffer-sizing",
        (variant, f"{buffer_bdp:g}bdp", f"{flows:g}"),
        settings.dumbbell(settings.buffer(settings.FIFO, buffer_bdp), pairs),
        settings.alike(variant, round(flows), pairs),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="buffer-sizing",
    paper="RFC 9743, 5.1.2",
    about="0.05 to 8 bandwidth–delay products of buffer, 1 to 64 flows: use of the link, delay",
    axes={
        "variant": settings.VARIANTS,
        "buffer_bdp": (0.05, 0.25, 0.5, 1.0, 2.0, 8.0),
        "flows": (1.0, 4.0, 16.0),
        "duration_s": (24.0,),
    },
    parts=({}, {"buffer_bdp": (0.25, 1.0), "flows": (64.0,)}),
    build=scenario,
    quick={"buffer_bdp": (0.25, 2.0), "flows": (1.0, 8.0), "duration_s": (8.0,)},
    compares=("variant",),
)
