"""Flows that come and go: one more every step until there are four, then one less every step.

four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, Scenario


def coming_and_going(variant: str, flows: int, step_s: float) -> tuple[Flow, ...]:
    """Whoever came first goes first, so that each flow lasts equally long."""
    return tuple(
        settings.flow(f"flow{n + 1}", n + 1, variant, n * step_s, flows * step_s)
        for n in range(flows)
    )


def scenario(*, variant: str, queue: str, flows: float, step_s: float, seed: int) -> Scenario:
    """One trial."""
    number = round(flows)
    return settings.trial(
        "convergence",
        (variant, queue, f"{flows:g}", f"{step_s:g}s"),
        settings.dumbbell(settings.buffer(queue), number),
        coming_and_going(variant, number, step_s),
        (2 * number - 1) * step_s,
        seed,
        settling=0.0,
    )


EXPERIMENT = Experiment(
    name="convergence",
    paper="RFC 5166, 2.2",
    about="flows that come and go every 10 s: time to a fair share, fairness, oscillation",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "flows": (4.0,),
        "step_s": (10.0,),
    },
    build=scenario,
    quick={"flows": (3.0,), "step_s": (4.0,)},
    compares=("variant", "queue"),
)
