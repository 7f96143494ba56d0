"""One flow across 1 to 5 bottlenecks, and one beside it on each of them.

    router1 ══ router2 ══ … ══ routerN      10 Mbit/s each

Max–min fairness gives every flow half of a bottleneck, however many the long one crosses.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Bottleneck, Path, Scenario, Topology, TopologyKind

NECK_MS = 5.0
ACCESS_MS = 5.0


def scenario(
    *, variant: str, queue: str, bottlenecks: float, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    number = round(bottlenecks)
    neck = Bottleneck(settings.RATE_MBIT, settings.buffer(queue), delay_ms=NECK_MS)
    cross = (settings.flow(f"cross{n}", n + 1, variant) for n in range(1, number + 1))
    return settings.trial(
        "parking-lot",
        (variant, queue, f"{bottlenecks:g}"),
        Topology(TopologyKind.PARKING_LOT, neck, hosts=number, access=Path(delay_ms=ACCESS_MS)),
        (settings.flow("long", 1, variant), *cross),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="parking-lot",
    paper="RFC 5166, 2.3",
    about="one flow across 1 to 5 bottlenecks against one flow on each",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "bottlenecks": (1.0, 2.0, 3.0, 4.0, 5.0),
        "duration_s": (24.0,),
    },
    build=scenario,
    quick={"bottlenecks": (1.0, 3.0), "duration_s": (8.0,)},
    compares=("variant", "queue"),
)
