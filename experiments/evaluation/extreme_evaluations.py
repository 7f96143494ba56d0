"""Standard evaluations of extreme paths: collapse, long delays, aggregating links; and of calls."""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from experiments.evaluation.flow_evaluations import MAX_PAIRS
from experiments.evaluation.path_evaluations import losses, transfers
from testbed.errors import require_known
from testbed.scenario.call import Call, Media
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.workload import Distribution, Sizes

COLLAPSE_MBIT = 1.0
COLLAPSE_PACKETS = 50  # of buffer: 0.6 s
COLLAPSE_SAMPLES_MS = 200.0  # of 500 flows


def collapse_trial(
    *, variant: str, queue: str, flows: float, loss_percent: float, duration_s: float, seed: int
) -> Scenario:
    """Run up to 500 flows through 1 Mbit/s, or one flow of which most packets are lost.

        four senders ── left ══ right ── four receivers      1 Mbit/s, 40 ms, 50 packets

    A fair share for each of 500 flows is one packet in six seconds. Losses are random, behind the
    bottleneck.
    """
    pairs = min(MAX_PAIRS, round(flows))
    loss = losses(loss_percent, 1.0) if loss_percent else None
    trial = settings.trial(
        "collapse",
        (variant, queue, f"{flows:g}", f"{loss_percent:g}pc"),
        settings.dumbbell(
            Queue(queue, limit_packets=COLLAPSE_PACKETS), pairs, rate_mbit=COLLAPSE_MBIT
        ),
        tuple(
            dataclasses.replace(each, loss=loss)
            for each in settings.same_variant_flows(variant, round(flows), pairs)
        ),
        duration_s,
        seed,
    )
    return dataclasses.replace(trial, sample_interval_ms=COLLAPSE_SAMPLES_MS)


COLLAPSE = settings.evaluation(
    name="collapse",
    paper="RFC 9743, 5.1.1",
    about="500 flows on 1 Mbit/s, and losses beyond 50 %: what is sent, and what arrives",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "flows": (100.0, 500.0),
        "loss_percent": (0.0,),
        "duration_s": (60.0,),
    },
    parts=({}, {"flows": (1.0,), "loss_percent": (50.0, 70.0)}),
    build=collapse_trial,
    quick={"flows": (1.0, 100.0), "loss_percent": (0.0, 50.0), "duration_s": (24.0,)},
    scores="COLLAPSE_SCORES",
)


def long_delay_trial(
    *, variant: str, queue: str, rtt_ms: float, duration_s: float, seed: int
) -> Scenario:
    """Run one flow over a path as long as a geostationary satellite's, slow start included.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 200 and 600 ms
    """
    return settings.trial(
        "long-delay",
        (variant, queue, f"{rtt_ms:g}ms"),
        settings.dumbbell(settings.buffer(queue), 1, (rtt_ms,)),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=0.0,
    )


LONG_DELAY = settings.evaluation(
    name="long-delay",
    paper="RFC 9743, 7.5",
    about="round trips of 200 and 600 ms, slow start included: use of the link, delay, losses",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "rtt_ms": (200.0, 600.0),
        "duration_s": (60.0,),
    },
    build=long_delay_trial,
    quick={"rtt_ms": (600.0,), "duration_s": (24.0,)},
    scores="LONG_DELAY_SCORES",
)

BURST_MS = 20.0


def aggregation_trial(
    *, variant: str, queue: str, burst_packets: float, duration_s: float, seed: int
) -> Scenario:
    """Run a flow over a link that aggregates packets, so that data and ACKs arrive in bursts.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms

    The link sends up to `burst_packets` waiting packets as one, which takes at most 20 ms; they
    arrive together, as over Wi-Fi or a cable modem.
    """
    packets = round(burst_packets)
    bottleneck = LinkSettings(
        settings.EVALUATION_MBIT,
        settings.BOTTLENECK_MS,
        settings.buffer(queue),
        aggregate_packets=packets,
        aggregate_ms=BURST_MS if packets > 1 else 0.0,
    )
    return settings.trial(
        "aggregation",
        (variant, queue, f"{packets}"),
        dumbbell(bottleneck, 1, rtts_ms=(settings.RTT_MS,)),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
    )


AGGREGATION = settings.evaluation(
    name="aggregation",
    paper="RFC 9743, 6.4",
    about="a link that sends up to 16 packets as one: bursts of data and of acknowledgements",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "burst_packets": (1.0, 4.0, 16.0),
        "duration_s": (24.0,),
    },
    build=aggregation_trial,
    quick={"burst_packets": (16.0,), "duration_s": (8.0,)},
    scores="AGGREGATION_SCORES",
)

CALL_MBIT, CALL_RTT_MS, CALL_QUEUE_MS = 2.0, 100.0, 300.0
VIDEO_MBIT = 0.5
BESIDE_LOAD = 0.5
BESIDE_BYTES = 100_000
CALLS_TCP = ("long", "short")


def call_trial(*, variant: str, queue: str, tcp: str, duration_s: float, seed: int) -> Scenario:
    """Send a voice and a video call beside TCP: test cases 5.6 and 5.7 of RFC 8867.

        sender1 ── left ══ right ── receiver1      2 Mbit/s, 100 ms, 300 ms of buffer
        sender2 ──┘          └── receiver2

    The calls do not adapt to the network: what they lose is TCP's doing. With `long`, TCP is one
    flow of the variant; with `short`, transfers of 100 kB that arrive as a Poisson process and use
    half of the link.
    """
    require_known("tcp", tcp, CALLS_TCP)
    beside = settings.flow("tcp", 2, variant)
    if tcp == "short":
        sizes = Sizes(Distribution.CONSTANT, mean_bytes=BESIDE_BYTES)
        short = transfers(sizes, BESIDE_LOAD, CALL_MBIT, duration_s)
        beside = dataclasses.replace(beside, kind=FlowKind.WORKLOAD, workload=short)
    calls = (
        Flow(f"call-{call.media}", FlowKind.CALL, "sender1", "receiver1", call=call)
        for call in (Call(), Call(Media.VIDEO, VIDEO_MBIT))
    )
    buffer = Queue(queue, limit_packets=round(CALL_QUEUE_MS * CALL_MBIT * 125 / 1514))
    return settings.trial(
        "calls",
        (variant, queue, tcp),
        settings.dumbbell(buffer, 2, (CALL_RTT_MS,), CALL_MBIT),
        (beside, *calls),
        duration_s,
        seed,
    )


CALLS = settings.evaluation(
    name="calls",
    paper="RFC 9743, 5.2.2; RFC 8867, 5.6 and 5.7",
    about="a voice and a video call beside long and short TCP: their losses, delay and jitter",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "tcp": CALLS_TCP,
        "duration_s": (60.0,),
    },
    build=call_trial,
    quick={"tcp": ("long",), "duration_s": (16.0,)},
    scores="CALLS_SCORES",
)
