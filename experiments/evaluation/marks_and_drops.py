"""ECN: the same queue with marks and with drops, alone and beside Cubic; and DCTCP on its step.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
    sender2 ──┘          └── receiver2

`codel` has its defaults. `step` marks every packet that waited longer than DCTCP's threshold, a
seventh of the round trip (Alizadeh and others, 2010, 3.3). Variants that go by marks run only where
marks are set.
"""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Queue, Scenario

STEP_PART = 7.0  # Alizadeh and others (2010), 3.3: K > C × RTT / 7
LIMIT_BDP = 4.0


def queue(name: str, marks: bool) -> Queue:
    """CoDel, or a step: its threshold for marks, below which CoDel's own target never is."""
    step_ms = settings.RTT_MS / STEP_PART
    options = {"ce_threshold_ms": round(step_ms, 3), "target_ms": 1000.0} if name == "step" else {}
    return Queue("codel", limit_bdp=LIMIT_BDP, ecn=marks, options=options)


def scenario(
    *, variant: str, signal: str, aqm: str, beside: str, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    alone = beside == "alone"
    others = () if alone else (settings.flow("other", 2, beside),)
    return settings.trial(
        "ecn",
        (variant, signal, aqm, beside),
        settings.dumbbell(queue(aqm, signal == "marks"), 1 if alone else 2),
        (settings.flow("flow", 1, variant), *others),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="ecn",
    paper="RFC 9743, 7.1",
    about="marks against drops, for each variant, alone and beside Cubic; DCTCP with its step",
    axes={
        "variant": settings.VARIANTS,
        "signal": ("drops", "marks"),
        "aqm": ("codel",),
        "beside": ("alone", "cubic"),
        "duration_s": (24.0,),
    },
    parts=(
        {},
        {"variant": ("dctcp", "cubic"), "signal": ("marks",), "aqm": ("step",)},
    ),
    build=scenario,
    quick={"aqm": ("codel",), "beside": ("alone",), "duration_s": (8.0,)},
    compares=("variant",),
)
