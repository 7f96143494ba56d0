"""Completion times: web-search transfers, short ones and long ones, through one bottleneck.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms

The receiver asks for transfers by a Poisson process that fills the part `load` of the link; each
has a connection of its own. Sizes are those of a data centre that searches the web (Alizadeh and
others, 2010) times 0.05: half of them are shorter than 4 kB, 2 in 100 longer than 1 MB. A seed's
transfers are the same for every variant and queue.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.workload.drawing import rate_per_s
from testbed.scenario.workload.workload import Arrivals, Sizes, Workload

SCALE = 0.05
LONGER = 1.1  # than the mean: a Poisson process may take longer
SETTLE_S = 5.0  # for the last transfers to end in


def web(load: float, duration_s: float) -> Workload:
    """As many transfers as are over before the trial is."""
    arrivals, sizes = Arrivals(load=load), Sizes(scale=SCALE)
    per_s = rate_per_s(Workload(arrivals, sizes), settings.RATE_MBIT)
    count = max(1, round(per_s * (duration_s - SETTLE_S) / LONGER))
    return Workload(arrivals, sizes, count=count)


def scenario(*, variant: str, queue: str, load: float, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    flow = Flow(
        "web",
        FlowKind.WORKLOAD,
        "sender1",
        "receiver1",
        variant=variant,
        workload=web(load, duration_s),
    )
    return settings.trial(
        "completion",
        (variant, queue, f"{load:g}"),
        settings.dumbbell(settings.buffer(queue), 1),
        (flow,),
        duration_s,
        seed,
        settling=0.0,
    )


EXPERIMENT = Experiment(
    name="completion",
    paper="RFC 9743, 5.1.5",
    about="completion times of short and long transfers, by load",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO, "fq_codel"),
        "load": (0.3, 0.6, 0.8),
        "duration_s": (60.0,),
    },
    build=scenario,
    quick={"queue": (settings.FIFO,), "load": (0.6,), "duration_s": (32.0,)},
    compares=("variant", "queue"),
)
