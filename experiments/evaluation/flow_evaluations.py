"""How flows share a bottleneck: standard evaluations of fairness, convergence and harm."""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import ALONE
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.named_networks import LinkSettings, parking_lot

SHORT_MS = 20.0


def rtt_fairness_trial(
    *, variant: str, queue: str, ratio: float, beside: str, duration_s: float, seed: int
) -> Scenario:
    """Run two flows whose round trips differ: 20 ms, and up to sixteen times that.

        sender1 ── left ══ right ── receiver1     20 ms
        sender2 ──┘          └── receiver2        20 ms × ratio

    `beside=itself`: both flows have the variant. `beside=cubic`: the variant has the long round
    trip, and Cubic the short one. The buffer is one bandwidth–delay product of the longer round
    trip.
    """
    other = variant if beside == "itself" else beside
    return settings.trial(
        "rtt-fairness",
        (variant, queue, f"1to{ratio:g}", beside),
        settings.dumbbell(settings.buffer(queue), 2, (SHORT_MS, ratio * SHORT_MS)),
        (settings.flow("short", 1, other), settings.flow("long", 2, variant)),
        duration_s,
        seed,
    )


RTT_FAIRNESS = settings.evaluation(
    name="rtt-fairness",
    paper="RFC 5166, 2.3",
    about="two flows with round trips 1:1 to 1:16, beside themselves and beside Cubic",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "ratio": (1.0, 2.0, 4.0, 8.0, 16.0),
        "beside": ("itself", "cubic"),
        "duration_s": (40.0,),
    },
    build=rtt_fairness_trial,
    quick={"ratio": (1.0, 8.0), "beside": ("itself",), "duration_s": (10.0,)},
    scores="RTT_FAIRNESS_SCORES",
)


def coming_and_going(variant: str, flows: int, step_s: float) -> tuple[Flow, ...]:
    """Return flows that end in the order in which they start, so that all last equally long."""
    return tuple(
        settings.flow(f"flow{n + 1}", n + 1, variant, n * step_s, flows * step_s)
        for n in range(flows)
    )


def convergence_trial(
    *, variant: str, queue: str, flows: float, step_s: float, seed: int
) -> Scenario:
    """Start a flow every step until there are four, then end one every step.

    four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
    """
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


CONVERGENCE = settings.evaluation(
    name="convergence",
    paper="RFC 5166, 2.2",
    about="flows that come and go every 10 s: time to a fair share, fairness, oscillation",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "flows": (4.0,),
        "step_s": (10.0,),
    },
    build=convergence_trial,
    quick={"flows": (3.0,), "step_s": (4.0,)},
    scores="CONVERGENCE_SCORES",
)


LATE = 1 / 3  # of the trial


def latecomer_trial(
    *, variant: str, queue: str, beside: str, duration_s: float, seed: int
) -> Scenario:
    """Start a flow when another has the link to itself.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
        sender2 ──┘          └── receiver2

    The variant comes late: after a third of the trial, to another flow of the variant or to Cubic.
    """
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


LATECOMER = settings.evaluation(
    name="latecomer",
    paper="RFC 5166, 2.3",
    about="a flow that comes to a full link: its share, and when it has it",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "beside": ("itself", "cubic"),
        "duration_s": (45.0,),
    },
    build=latecomer_trial,
    quick={"beside": ("itself",), "duration_s": (15.0,)},
    scores="LATECOMER_SCORES",
)


MAX_PAIRS = 4


def intra_protocol_trial(
    *, variant: str, queue: str, flows: float, duration_s: float, seed: int
) -> Scenario:
    """Run 2 to 64 flows of one variant.

    four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
    """
    pairs = min(MAX_PAIRS, round(flows))
    return settings.trial(
        "intra-protocol",
        (variant, queue, f"{flows:g}"),
        settings.dumbbell(settings.buffer(queue), pairs),
        settings.same_variant_flows(variant, round(flows), pairs),
        duration_s,
        seed,
    )


INTRA_PROTOCOL = settings.evaluation(
    name="intra-protocol",
    paper="RFC 9743, 5.1.4",
    about="2 to 64 flows of one variant: fairness, delay, losses",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "flows": (2.0, 4.0, 16.0, 64.0),
        "duration_s": (24.0,),
    },
    build=intra_protocol_trial,
    quick={"flows": (4.0,), "duration_s": (10.0,)},
    scores="INTRA_PROTOCOL_SCORES",
)


def harm_trial(*, variant: str, victim: str, duration_s: float, seed: int) -> Scenario:
    """Measure the harm of a flow to another: each variant beside each, beside itself, and alone.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
        sender2 ──┘          └── receiver2

    Harm (Ware and others, 2019) is what the victim loses against having the link to itself: of its
    throughput, of its low delay, of its low losses; in percent, 0 is none and 100 is all.
    """
    alone = victim == ALONE
    flows = () if alone else (settings.flow("one", 1, variant),)
    return settings.trial(
        "harm",
        (variant, ALONE) if alone else (variant, "on", victim),
        settings.dumbbell(settings.buffer(settings.FIFO), 2),
        (*flows, settings.flow("victim", 2, variant if alone else victim)),
        duration_s,
        seed,
    )


HARM = settings.evaluation(
    name="harm",
    paper="Ware 2019; RFC 9743, 5.2.1",
    about="each variant alone and beside each: the harm in throughput, delay and losses",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "victim": (*settings.EVALUATED_VARIANTS, ALONE),
        "duration_s": (40.0,),
    },
    build=harm_trial,
    quick={"duration_s": (8.0,)},
    figures="harm_figures",
    tables="harm_tables",
    summary="harm_summary",
    scores="HARM_SCORES",
)


BOTTLENECK_DELAY_MS = 5.0
PATH_ACCESS_MS = 5.0


def parking_lot_trial(
    *, variant: str, queue: str, bottlenecks: float, duration_s: float, seed: int
) -> Scenario:
    """Run one flow across 1 to 5 bottlenecks, and one beside it on each of them.

        router1 ══ router2 ══ … ══ routerN      10 Mbit/s each

    Max–min fairness gives every flow half of a bottleneck, however many the long one crosses.
    """
    number = round(bottlenecks)
    neck = LinkSettings(
        settings.EVALUATION_MBIT, queue=settings.buffer(queue), delay_ms=BOTTLENECK_DELAY_MS
    )
    cross = (settings.flow(f"cross{n}", n + 1, variant) for n in range(1, number + 1))
    return settings.trial(
        "parking-lot",
        (variant, queue, f"{bottlenecks:g}"),
        parking_lot(neck, bottlenecks=number, access=LinkSettings(delay_ms=PATH_ACCESS_MS)),
        (settings.flow("long", 1, variant), *cross),
        duration_s,
        seed,
    )


PARKING_LOT = settings.evaluation(
    name="parking-lot",
    paper="RFC 5166, 2.3",
    about="one flow across 1 to 5 bottlenecks against one flow on each",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "bottlenecks": (1.0, 2.0, 3.0, 4.0, 5.0),
        "duration_s": (24.0,),
    },
    build=parking_lot_trial,
    quick={"bottlenecks": (1.0, 3.0), "duration_s": (8.0,)},
    scores="PARKING_LOT_SCORES",
    laws="parking_lot_laws",
)


def back(number: int) -> Flow:
    """Return a Cubic flow from the receivers' side to the senders'."""
    there = settings.flow(f"back{number}", 2, "cubic")
    return dataclasses.replace(there, src=there.dst, dst=there.src)


def reverse_traffic_trial(
    *, variant: str, queue: str, reverse_flows: float, duration_s: float, seed: int
) -> Scenario:
    """Run a flow whose acknowledgements wait behind the data of 0, 1 or 4 reverse Cubic flows.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms, the same queue both ways
    """
    return settings.trial(
        "reverse-traffic",
        (variant, queue, f"{reverse_flows:g}"),
        settings.dumbbell(settings.buffer(queue), 2),
        (settings.flow("there", 1, variant), *map(back, range(1, round(reverse_flows) + 1))),
        duration_s,
        seed,
    )


REVERSE_TRAFFIC = settings.evaluation(
    name="reverse-traffic",
    paper="RFC 5166, 2.1",
    about="a flow beside 0, 1 and 4 Cubic flows in the other direction",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "reverse_flows": (0.0, 1.0, 4.0),
        "duration_s": (24.0,),
    },
    build=reverse_traffic_trial,
    quick={"reverse_flows": (1.0,), "duration_s": (8.0,)},
    scores="REVERSE_TRAFFIC_SCORES",
)
