#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Guo, Yuan, Sheng 2.1: one flow of each variant through a router of 1 Mbit/s.

    romeo (sender1) ── router ── juliet (receiver)

The router sends at 1 Mbit/s in both directions, with a buffer of 0.1 MB, which is 0.8 s of queue,
or with CoDel that marks. 60 s per flow. A flow to the router itself does not
cross the bottleneck: only its ACKs do, on their way back.

A seed draws when the flow starts, and within 5 % of the paper's the buffer and the links' delays,
whose round trip is 0.9 ms, less than a tenth of one frame's 12 ms at the bottleneck.

`codel` is the paper to the letter: its commands leave Linux's `tcp_ecn` as it is, with which no
sender asks for ECN, so that its CoDel drops. With `codel-ecn` the senders ask.
"""

from __future__ import annotations

import sys

from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Queue, Shaping
from testbed.scenario.queues import DISCIPLINES

BUFFER_BYTES = 104_857  # the paper's `limit 0.1MB`: tc's MB are 1024 · 1024 bytes
CODEL_WITHOUT_ECN = "codel"  # marks, but no sender asks for it
ROUTER_QUEUES = ("bfifo", CODEL_WITHOUT_ECN, "codel-ecn")
CODEL_PACKETS = 100  # the paper's `codel limit 100 target 10ms ecn`
# The paper's round-trip times of the idle path are 0.9 ms to the receiver, 0.5 ms to the router.
LINK_DELAY_MS = 0.225
ACCESS_MBIT = 100.0  # the paper's links except the router's; not stated there
SHORT_S = 10.0  # at 100 Mbit/s
ROUTER_JITTER_MS = 100.0  # within which a flow starts
DRAWN_SHARE = 0.05  # of the buffer and of delays, so that an answer is of networks like the paper's


def bottleneck(rate_mbit: float, queue: str, delay_ms: float) -> LinkSettings:
    """Return the router's shaping, in both directions: htb, as the paper's own commands have it.

    A packet that finds the router idle takes no time at 1 Mbit/s: hence the paper's 0.9 ms.
    """
    return LinkSettings(rate_mbit, queue=buffer(queue), delay_ms=delay_ms, shaping=Shaping.HTB)


def buffer(name: str) -> Queue:
    """Return one of the paper's two queues, or another discipline with the same buffer."""
    if name in (CODEL_WITHOUT_ECN, "codel-ecn"):
        return Queue("codel", limit_packets=CODEL_PACKETS, ecn=True, options={"target_ms": 10})
    ecn = name in DISCIPLINES and DISCIPLINES[name].ecn
    return Queue(name, limit_bytes=BUFFER_BYTES, ecn=ecn)


def scenario(
    *,
    variant: str,
    queue: str,
    path: str,
    rate_mbit: float,
    delay_ms: float,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return the scenario of one trial; both links have the delay, one way."""
    return Scenario(
        experiment="router-bottleneck",
        label=f"{variant}-{queue}-{path}",
        network=router_bottleneck(
            bottleneck(rate_mbit, queue, delay_ms),
            access=LinkSettings(
                delay_ms=delay_ms, rate_mbit=ACCESS_MBIT if path == "router" else None
            ),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", path, variant=variant),),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=ROUTER_JITTER_MS,
        drawn_share=DRAWN_SHARE,
        asks_ecn=queue != CODEL_WITHOUT_ECN,
    )


EXPERIMENT = Experiment(
    name="router-bottleneck",
    paper="Guo, Yuan, Sheng 2.1",
    about="one flow of each variant through a router of 1 Mbit/s with 0.1 MB of buffer",
    axes={
        "variant": ("linux-reno", "cubic", "vegas", "bbr", "veno"),
        "queue": ROUTER_QUEUES,
        "path": ("receiver",),
        "rate_mbit": (1.0,),
        "delay_ms": (LINK_DELAY_MS,),
        "duration_s": (60.0,),
    },
    parts=({}, {"path": ("router",), "duration_s": (SHORT_S,)}),
    build=scenario,
    quick={"queue": ("bfifo",), "path": ("receiver",), "duration_s": (20.0,)},
    figures=on_demand("experiments.guo_yuan_sheng.bottleneck_figures", "draw"),
    claims=on_demand("experiments.guo_yuan_sheng.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
