"""What queues do to flows: standard evaluations of buffers, marks and disciplines."""

from __future__ import annotations

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Change, Graph, Queue

AQM_PAIRS = 4


def buffer_sizing_trial(
    *, variant: str, buffer_bdp: float, flows: float, duration_s: float, seed: int
) -> Scenario:
    """Give 1 to 64 flows 0.05 to 8 bandwidth–delay products of buffer.

    four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms
    """
    pairs = min(AQM_PAIRS, round(flows))
    return settings.trial(
        "buffer-sizing",
        (variant, f"{buffer_bdp:g}bdp", f"{flows:g}"),
        settings.dumbbell(settings.buffer(settings.FIFO, buffer_bdp), pairs),
        settings.same_variant_flows(variant, round(flows), pairs),
        duration_s,
        seed,
    )


BUFFER_SIZING = settings.evaluation(
    name="buffer-sizing",
    paper="RFC 9743, 5.1.2",
    about="0.05 to 8 bandwidth–delay products of buffer, 1 to 64 flows: use of the link, delay",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "buffer_bdp": (0.05, 0.25, 0.5, 1.0, 2.0, 8.0),
        "flows": (1.0, 4.0, 16.0),
        "duration_s": (24.0,),
    },
    parts=({}, {"buffer_bdp": (0.25, 1.0), "flows": (64.0,)}),
    build=buffer_sizing_trial,
    quick={"buffer_bdp": (0.25, 2.0), "flows": (1.0, 8.0), "duration_s": (8.0,)},
    scores="BUFFER_SIZING_SCORES",
    laws="buffer_sizing_laws",
)


STEP_PART = 7.0  # Alizadeh and others (2010), 3.3: K > C × RTT / 7
ECN_LIMIT_BDP = 4.0


def queue(name: str, marks: bool) -> Queue:
    """Return CoDel with its defaults, or a step: it marks from a threshold on, without a target."""
    step_ms = settings.RTT_MS / STEP_PART
    options = {"ce_threshold_ms": round(step_ms, 3), "target_ms": 1000.0} if name == "step" else {}
    return Queue("codel", limit_bdp=ECN_LIMIT_BDP, ecn=marks, options=options)


def ecn_trial(
    *, variant: str, signal: str, aqm: str, beside: str, duration_s: float, seed: int
) -> Scenario:
    """Run a variant through a queue that marks or drops, alone or beside Cubic.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
        sender2 ──┘          └── receiver2

    `codel` has its defaults. `step` marks every packet that waited longer than DCTCP's threshold, a
    seventh of the round trip (Alizadeh and others, 2010, 3.3). Variants that go by marks run only
    where marks are set.
    """
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


ECN = settings.evaluation(
    name="ecn",
    paper="RFC 9743, 7.1",
    about="marks against drops, for each variant, alone and beside Cubic; DCTCP with its step",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "signal": ("drops", "marks"),
        "aqm": ("codel",),
        "beside": ("alone", "cubic"),
        "duration_s": (24.0,),
    },
    parts=(
        {},
        {"variant": ("dctcp", "cubic"), "signal": ("marks",), "aqm": ("step",)},
    ),
    build=ecn_trial,
    quick={"aqm": ("codel",), "beside": ("alone",), "duration_s": (8.0,)},
    figures="with_plane",
    scores="ECN_SCORES",
    laws="ecn_laws",
)


FRIENDLY, AGGRESSIVE = "linux-reno", "cubic"
AQM_LIMIT_BDP = 4.0
PAIRS = 4
RTTS_MS = (20.0, 160.0)
AQM_CBR_MBIT, CBR_BYTES = 6.0, 1000
TRAFFIC = ("mild", "medium", "heavy", "aggressive", "unresponsive", "rtt", "burst", "changing")
BURST_S, BURST_TIMES = 0.4, 3.0
SLOWER = 0.25  # of the rate
BURST_AT = 0.6  # of the trial: when the burst comes


def cbr(rate_mbit: float, start_s: float = 0.0, lasts_s: float | None = None) -> Flow:
    """Return unresponsive traffic from the last pair's sender."""
    return Flow(
        "cbr",
        FlowKind.CBR,
        f"sender{PAIRS}",
        f"receiver{PAIRS}",
        start_s=start_s,
        duration_s=lasts_s,
        rate_mbit=rate_mbit,
        packet_bytes=CBR_BYTES,
    )


def flows(traffic: str, duration_s: float) -> tuple[Flow, ...]:
    """Return the flows of a kind of traffic."""
    friendly = {
        "mild": 2,
        "medium": 8,
        "heavy": 24,
        "unresponsive": 4,
        "rtt": 2,
        "burst": 2,
        "changing": 8,
    }
    if traffic == "aggressive":
        return settings.same_variant_flows(AGGRESSIVE, 8, PAIRS)
    friendly_flows = settings.same_variant_flows(FRIENDLY, friendly[traffic], PAIRS)
    if traffic == "unresponsive":
        return (*friendly_flows, cbr(AQM_CBR_MBIT))
    if traffic == "burst":
        return (
            *friendly_flows,
            cbr(BURST_TIMES * settings.EVALUATION_MBIT, BURST_AT * duration_s, BURST_S),
        )
    return friendly_flows


def aqm_network(queue: str, traffic: str, duration_s: float) -> Graph:
    """Return the network that the traffic is sent through."""
    steps = (
        Change(duration_s / 3, rate_mbit=SLOWER * settings.EVALUATION_MBIT),
        Change(duration_s * 2 / 3, rate_mbit=settings.EVALUATION_MBIT),
    )
    return settings.dumbbell(
        Queue(queue, limit_bdp=AQM_LIMIT_BDP),
        PAIRS,
        RTTS_MS if traffic == "rtt" else (),
        schedule=steps if traffic == "changing" else (),
    )


def aqm_trial(*, queue: str, traffic: str, duration_s: float, seed: int) -> Scenario:
    """Send the traffic of RFC 7928 through a queue, as far as one machine can make it.

        four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms, a limit of 4 BDP

    `mild`, `medium`, `heavy`: 2, 8 and 24 flows of Linux's Reno. `aggressive`: 8 flows of Cubic.
    `unresponsive`: four of Reno beside CBR of 6 Mbit/s. `rtt`: two of Reno, 20 and 160 ms. `burst`:
    two of Reno, and 0.4 s of CBR at three times the link's rate. `changing`: 8 of Reno, and a link
    that has a quarter of its rate in the second third of the trial.
    """
    return settings.trial(
        "aqm",
        (queue, traffic),
        aqm_network(queue, traffic, duration_s),
        flows(traffic, duration_s),
        duration_s,
        seed,
    )


AQM = settings.evaluation(
    name="aqm",
    paper="RFC 7928, 8.2",
    about="queues under mild to heavy and unresponsive traffic, round trips, bursts, other rates",
    axes={
        "queue": ("bfifo", "red", "pie", "codel", "fq_codel", "cake"),
        "traffic": TRAFFIC,
        "duration_s": (24.0,),
    },
    build=aqm_trial,
    quick={"traffic": ("mild", "medium", "unresponsive"), "duration_s": (8.0,)},
    figures="with_plane",
    scores="AQM_SCORES",
    laws="aqm_laws",
)
