"""A path that changes at once, in the middle of a trial: its delay or its rate, four times up or
down.

    sender1 ── left ══ right ── receiver1      10 Mbit/s and 40 ms, before or after

Only what comes after the change is measured. The buffer is one bandwidth–delay product of the path
before it.
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.links.schedule import Change
from testbed.scenario.model import Scenario, Topology

MIDDLE = 0.5
FACTOR = 4.0
STEPS = ("delay-up", "delay-down", "rate-up", "rate-down")
LONG_NECK_MS = settings.NECK_MS + (FACTOR - 1) * settings.RTT_MS / 2  # 160 ms, there and back
SLOW_MBIT = settings.RATE_MBIT / FACTOR


def network(step: str, queue: str, at_s: float) -> Topology:
    """The dumbbell whose bottleneck changes then; a step down begins at the higher value."""
    plain = settings.dumbbell(settings.buffer(queue), 1)
    neck, short_ms = plain.bottleneck, settings.NECK_MS
    changed = {
        "delay-up": dataclasses.replace(neck, schedule=(Change(at_s, delay_ms=LONG_NECK_MS),)),
        "delay-down": dataclasses.replace(
            neck, delay_ms=LONG_NECK_MS, schedule=(Change(at_s, delay_ms=short_ms),)
        ),
        "rate-up": dataclasses.replace(
            neck, rate_mbit=SLOW_MBIT, schedule=(Change(at_s, rate_mbit=settings.RATE_MBIT),)
        ),
        "rate-down": dataclasses.replace(neck, schedule=(Change(at_s, rate_mbit=SLOW_MBIT),)),
    }
    return dataclasses.replace(plain, bottleneck=changed[step])


def scenario(*, variant: str, queue: str, step: str, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    return settings.trial(
        "path-change",
        (variant, queue, step),
        network(step, queue, MIDDLE * duration_s),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=MIDDLE,
    )


EXPERIMENT = Experiment(
    name="path-change",
    paper="RFC 9743, 7.9",
    about="a step of the delay or the rate: time to the new equilibrium, use of the link, queue",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "step": STEPS,
        "duration_s": (48.0,),
    },
    build=scenario,
    quick={"step": ("delay-up", "rate-down"), "duration_s": (16.0,)},
    compares=("variant", "queue"),
)
