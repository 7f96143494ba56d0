"""Standard evaluations of what does not cooperate: policers, and receivers that misbehave."""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.errors import require_known
from testbed.scenario.model import Misbehaviour, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Direction, Queue

POLICED_PAIRS = 4
HONEST = "honest"
RECEIVERS = (HONEST, *Misbehaviour)
WINDOW_BDP = 8  # of a receiver: all that limits a sender that never learns of losses
MARKING_LIMIT_BDP = 4.0


def policer_trial(
    *, variant: str, bucket_bdp: float, flows: float, duration_s: float, seed: int
) -> Scenario:
    """Run flows through a token bucket that drops what exceeds it: there is no queue to fill.

    four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms, a bucket of 0.1 to 4 BDP
    """
    pairs = min(POLICED_PAIRS, round(flows))
    bottleneck = LinkSettings(
        settings.EVALUATION_MBIT,
        settings.BOTTLENECK_MS,
        Queue("police", limit_bdp=bucket_bdp),
        reverse=Direction(delay_ms=settings.BOTTLENECK_MS),
    )
    return settings.trial(
        "policer",
        (variant, f"{bucket_bdp:g}bdp", f"{flows:g}"),
        dumbbell(bottleneck, pairs, rtts_ms=(settings.RTT_MS,)),
        settings.same_variant_flows(variant, round(flows), pairs),
        duration_s,
        seed,
    )


POLICER = settings.evaluation(
    name="policer",
    paper="Flach 2016",
    about="a token bucket that drops without a queue: goodput, losses, fairness",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "bucket_bdp": (0.1, 1.0, 4.0),
        "flows": (1.0, 4.0),
        "duration_s": (24.0,),
    },
    build=policer_trial,
    quick={"bucket_bdp": (0.1, 1.0), "duration_s": (8.0,)},
    scores="POLICER_SCORES",
)


def misbehaving_receivers_trial(
    *, variant: str, receiver: str, duration_s: float, seed: int
) -> Scenario:
    """Run a flow whose receiver misbehaves beside one of the same variant whose receiver does not.

        sender1 ── left ══ right ── receiver1 (misbehaves)      10 Mbit/s, 40 ms
        sender2 ──┘          └── receiver2

    With an honest receiver the two are alike, and each has half of the link. Bleached ECN is behind
    a CoDel that marks, the others behind a buffer of 1 BDP.
    """
    require_known("receiver", receiver, RECEIVERS)
    how = None if receiver == HONEST else Misbehaviour(receiver)
    marking = Queue("codel", limit_bdp=MARKING_LIMIT_BDP, ecn=True)
    queue = marking if how is Misbehaviour.BLEACHED_ECN else settings.buffer(settings.FIFO)
    window_bytes = round(WINDOW_BDP * settings.EVALUATION_MBIT * 125 * settings.RTT_MS)
    flow = dataclasses.replace(
        settings.flow("flow", 1, variant), receiver=how, window_bytes=window_bytes
    )
    return settings.trial(
        "misbehaving-receivers",
        (variant, receiver),
        settings.dumbbell(queue, 2),
        (flow, settings.flow("victim", 2, variant)),
        duration_s,
        seed,
    )


MISBEHAVING_RECEIVERS = settings.evaluation(
    name="misbehaving-receivers",
    paper="RFC 9743, 7.6; Savage 1999",
    about="divided and optimistic acknowledgements, bleached ECN: what a receiver gains by them",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "receiver": tuple(Misbehaviour),
        "duration_s": (24.0,),
    },
    build=misbehaving_receivers_trial,
    quick={"duration_s": (8.0,)},
    scores="MISBEHAVING_RECEIVERS_SCORES",
)
