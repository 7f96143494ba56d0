"""Pairs of transports through one bottleneck, the kernel's and those in user space.

    sender1 ── left ══ right ── receiver1
    sender2 ──┘          └── receiver2

`stack-sharing` asks who gets how much beside whom: two names in a pair, 10 Mbit/s and 40 ms with a
buffer of one BDP. What a seed draws is the network: each delay and the buffer within a tenth, the
rate within a percent, the starts within 100 ms.

`stack-conformance` is QUICbench's experiment (Mishra, Lim, Leong 2022): a stack beside the kernel's
control of the same name, on 20 Mbit/s with a round trip of 10 or 50 ms and a buffer of 0.5 to 5
BDP; and that control beside itself, which is what it is compared with (`envelope.py`).
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.errors import UsageError
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import CapturePoint, Scenario
from testbed.stacks.flows import is_stack, split

KERNEL_CONTROLS = ("cubic", "linux-reno", "bbr")
KERNEL_PAIRS = tuple(
    f"{one}/{other}" for n, one in enumerate(KERNEL_CONTROLS) for other in KERNEL_CONTROLS[n:]
)
DRAWN_PART = 0.1  # each delay and buffer, around the scenario's
DRAWN_BY = "experiments.stacks.stack_figures"


def sharing_trial(
    *,
    pair: str,
    rate_mbit: float,
    rtt_ms: float,
    buffer_bdp: float,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return two flows that share the bottleneck; the first quarter is left out."""
    one, slash, other = pair.partition("/")
    if not slash or "/" in other:
        raise UsageError(f"pair={pair}: not ONE/OTHER", "--set pair=cubic/quinn:bbr")
    trial = settings.trial(
        "stack-sharing",
        (one, other, f"{rate_mbit:g}", f"{rtt_ms:g}ms", f"{buffer_bdp:g}bdp"),
        settings.dumbbell(
            settings.buffer(settings.FIFO, buffer_bdp), 2, (rtt_ms, rtt_ms), rate_mbit
        ),
        (settings.flow("one", 1, one), settings.flow("other", 2, other)),
        duration_s,
        seed,
    )
    return dataclasses.replace(trial, drawn_share=DRAWN_PART, drawn_service_times=0.0)


def kernels_own(variant: str) -> str:
    """Return the kernel's control of the same name as a stack's; of the kernel's, itself."""
    if not is_stack(variant):
        return variant
    stack, control = split(variant)
    if name := stack.description.variants.get(control):
        return name
    raise UsageError(
        f"{variant}: the kernel has no control of its name", f"variants of {stack.name}/stack.toml"
    )


def conformance_trial(
    *,
    variant: str,
    rate_mbit: float,
    rtt_ms: float,
    buffer_bdp: float,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return a flow of the variant beside one of the kernel's own control of that name."""
    trial = settings.trial(
        "stack-conformance",
        (variant, f"{rate_mbit:g}", f"{rtt_ms:g}ms", f"{buffer_bdp:g}bdp"),
        settings.dumbbell(
            settings.buffer(settings.FIFO, buffer_bdp), 2, (rtt_ms, rtt_ms), rate_mbit
        ),
        (settings.flow("test", 1, variant), settings.flow("reference", 2, kernels_own(variant))),
        duration_s,
        seed,
        settling=0.0,
    )
    return dataclasses.replace(trial, captures=(CapturePoint.BOTTLENECK,), snaplen_bytes=96)


STACK_SHARING = Experiment(
    name="stack-sharing",
    paper="",
    about="two transports beside each other, the kernel's or in user space: who gets how much",
    axes={
        "pair": KERNEL_PAIRS,
        "rate_mbit": (settings.EVALUATION_MBIT,),
        "rtt_ms": (settings.RTT_MS,),
        "buffer_bdp": (1.0,),
        "duration_s": (20.0,),
    },
    build=sharing_trial,
    quick={"duration_s": (10.0,)},
    figures=on_demand(DRAWN_BY, "sharing_figures"),
    tables=on_demand(DRAWN_BY, "sharing_tables"),
)

STACK_CONFORMANCE = Experiment(
    name="stack-conformance",
    paper="Mishra, Lim, Leong 2022",
    about="how far a stack's control is from the kernel's of that name, by QUICbench's envelopes",
    axes={
        "variant": KERNEL_CONTROLS,
        "rate_mbit": (20.0,),
        "rtt_ms": (10.0, 50.0),
        "buffer_bdp": (0.5, 1.0, 3.0, 5.0),
        "duration_s": (30.0,),
    },
    build=conformance_trial,
    quick={"rtt_ms": (10.0,), "buffer_bdp": (1.0,), "duration_s": (10.0,)},
    figures=on_demand(DRAWN_BY, "conformance_figures"),
    tables=on_demand(DRAWN_BY, "conformance_tables"),
)
