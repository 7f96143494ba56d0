"""Queues under the traffic that RFC 7928 asks about, as far as one machine can make it.

    four senders ── left ══ right ── four receivers      10 Mbit/s, 40 ms, a limit of 4 BDP

`mild`, `medium`, `heavy`: 2, 8 and 24 flows of Linux's Reno. `aggressive`: 8 flows of Cubic.
`unresponsive`: four of Reno beside CBR of 6 Mbit/s. `rtt`: two of Reno, 20 and 160 ms. `burst`:
two of Reno, and 0.4 s of CBR at three times the link's rate. `changing`: 8 of Reno, and a link
that has a quarter of its rate in the second third of the trial.
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.links.schedule import Change
from testbed.scenario.model import Flow, FlowKind, Queue, Scenario, Topology

FRIENDLY, AGGRESSIVE = "linux-reno", "cubic"
LIMIT_BDP = 4.0
PAIRS = 4
RTTS_MS = (20.0, 160.0)
CBR_MBIT, CBR_BYTES = 6.0, 1000
TRAFFIC = ("mild", "medium", "heavy", "aggressive", "unresponsive", "rtt", "burst", "changing")
BURST_S, BURST_TIMES = 0.4, 3.0
SLOWER = 0.25  # of the rate
MIDDLE = 0.6  # of the trial: when the burst comes


def cbr(rate_mbit: float, start_s: float = 0.0, lasts_s: float | None = None) -> Flow:
    """Traffic that does not respond, from the last pair."""
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
    """What is sent through the queue."""
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
        return settings.alike(AGGRESSIVE, 8, PAIRS)
    own = settings.alike(FRIENDLY, friendly[traffic], PAIRS)
    if traffic == "unresponsive":
        return (*own, cbr(CBR_MBIT))
    if traffic == "burst":
        return (*own, cbr(BURST_TIMES * settings.RATE_MBIT, MIDDLE * duration_s, BURST_S))
    return own


def network(queue: str, traffic: str, duration_s: float) -> Topology:
    """What it is sent through."""
    rtts_ms = RTTS_MS if traffic == "rtt" else ()
    plain = settings.dumbbell(Queue(queue, limit_bdp=LIMIT_BDP), PAIRS, rtts_ms)
    if traffic != "changing":
        return plain
    steps = (
        Change(duration_s / 3, rate_mbit=SLOWER * settings.RATE_MBIT),
        Change(duration_s * 2 / 3, rate_mbit=settings.RATE_MBIT),
    )
    return dataclasses.replace(
        plain, bottleneck=dataclasses.replace(plain.bottleneck, schedule=steps)
    )


def scenario(*, queue: str, traffic: str, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    return settings.trial(
        "aqm",
        (queue, traffic),
        network(queue, traffic, duration_s),
        flows(traffic, duration_s),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="aqm",
    paper="RFC 7928, 8.2",
    about="queues under mild to heavy and unresponsive traffic, round trips, bursts, other rates",
    axes={
        "queue": ("bfifo", "red", "pie", "codel", "fq_codel", "cake"),
        "traffic": TRAFFIC,
        "duration_s": (24.0,),
    },
    build=scenario,
    quick={"traffic": ("mild", "medium", "unresponsive"), "duration_s": (8.0,)},
    compares=("queue",),
)
