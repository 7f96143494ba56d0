"""A flow whose acknowledgements wait behind data: none, 1 or 4 Cubic flows the other way.

sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms, the same queue both ways
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, Scenario


def back(number: int) -> Flow:
    """A flow from the receivers' side to the senders'."""
    there = settings.flow(f"back{number}", 2, "cubic")
    return dataclasses.replace(there, src=there.dst, dst=there.src)


def scenario(
    *, variant: str, queue: str, reverse_flows: float, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    return settings.trial(
        "reverse-traffic",
        (variant, queue, f"{reverse_flows:g}"),
        settings.dumbbell(settings.buffer(queue), 2),
        (settings.flow("there", 1, variant), *map(back, range(1, round(reverse_flows) + 1))),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="reverse-traffic",
    paper="RFC 5166, 2.1",
    about="a flow beside 0, 1 and 4 Cubic flows in the other direction",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "reverse_flows": (0.0, 1.0, 4.0),
        "duration_s": (24.0,),
    },
    build=scenario,
    quick={"reverse_flows": (1.0,), "duration_s": (8.0,)},
    compares=("variant", "queue"),
)
