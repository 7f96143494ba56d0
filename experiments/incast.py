#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Incast: many hosts answer one request at once, through one port of a switch.

    sender1 ──┐
    …         ├── router ═══ receiver
    sender40 ─┘     rate_mbit, a shallow buffer

As in the cluster of Alizadeh and others (2010), section 4.2.1: the receiver wants `request_bytes`
in equal parts from all senders, over 1 Gbit/s and a buffer of 100 kB, and has nothing to do until
the last part is there. Where the buffer overflows, a sender whose last segments are lost waits for
its retransmission timer, which Linux lets be 200 ms and no less: `rto_min_ms` is an axis. `step`
marks packets that wait behind 20 others, as DCTCP wants it, in a buffer of 66 packets. Any queue
discipline can be named instead, and has the same buffer.
"""

from __future__ import annotations

import sys

from testbed.errors import UsageError, require_known
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Queue
from testbed.scenario.queues import DISCIPLINES

MTU_MS = 1514 * 8e-6  # of a full frame at 1 Gbit/s
PORT_BYTES, PORT_PACKETS = 100_000, 66
QUEUES = {
    **{name: Queue(name, limit_packets=PORT_PACKETS) for name in DISCIPLINES},
    "droptail": Queue("bfifo", limit_bytes=PORT_BYTES),
    "step": Queue(
        "codel",
        limit_packets=PORT_PACKETS,
        ecn=True,
        options={"ce_threshold_ms": round(20 * MTU_MS, 3), "target_ms": 1000.0},
    ),
}
MAX_REQUEST_S = 5.0  # a trial ends with its last flow


def scenario(
    *,
    variant: str,
    queue: str,
    senders: float,
    request_bytes: float,
    rate_mbit: float,
    rtt_ms: float,
    rto_min_ms: float,
    seed: int,
) -> Scenario:
    """Request equal parts from all senders at once."""
    count = int(senders)
    if count < 1:
        raise UsageError(f"senders: {senders:g}: at least one")
    require_known("queue", queue, QUEUES)
    part = -(-int(request_bytes) // count)
    return Scenario(
        experiment="incast",
        label=f"{variant}-{queue}-{count}",
        network=router_bottleneck(
            LinkSettings(rate_mbit, queue=QUEUES[queue]),
            senders=count,
            access=LinkSettings(delay_ms=rtt_ms / 2),
        ),
        flows=tuple(
            Flow(
                f"s{number}",
                FlowKind.TCP,
                f"sender{number}",
                "receiver",
                variant=variant,
                bytes=part,
                rto_min_ms=int(rto_min_ms),
            )
            for number in range(1, count + 1)
        ),
        duration_s=MAX_REQUEST_S,
        seed=seed,
        start_jitter_ms=0.05,
        drawn_service_times=1.0,
        sample_interval_ms=1.0,
    )


EXPERIMENT = Experiment(
    name="incast",
    paper="RFC 9743, 7.11",
    about="many senders answer at once: completion times by variant, queue and number",
    axes={
        "variant": ("cubic",),
        "queue": ("droptail",),
        "senders": (5.0, 10.0, 20.0, 40.0),
        "request_bytes": (1e6,),
        "rate_mbit": (1000.0,),
        "rtt_ms": (0.1,),
        "rto_min_ms": (200.0,),
    },
    parts=({}, {"variant": ("cubic", "dctcp"), "queue": ("step",)}),
    build=scenario,
    quick={"senders": (10.0, 40.0)},
    metric="completion_s",
    compares=("variant",),
    scores=on_demand("experiments.incast_results", "INCAST_SCORES"),
    figures=on_demand("experiments.incast_results", "draw"),
    summary=on_demand("experiments.incast_results", "requests_table"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
