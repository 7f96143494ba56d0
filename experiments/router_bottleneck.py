#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Guo, Yuan, Sheng 2.1: one flow of each variant through a router of 1 Mbit/s.

    romeo (sender1) ── router ── juliet (receiver)

The router sends at 1 Mbit/s in both directions, behind a buffer of 0.1 MB, which is
0.8 s of queue. 60 s a flow.
"""

from __future__ import annotations

import sys

from analysis import plots
from testbed.experiment import Experiment
from testbed.queues import DISCIPLINES
from testbed.scenario import (
    Bottleneck,
    Flow,
    FlowKind,
    Path,
    Queue,
    Scenario,
    Topology,
    TopologyKind,
)

BUFFER_BYTES = 100_000  # the paper's `limit 0.1MB`
CODEL_PACKETS = 100  # the paper's `codel limit 100 target 10ms ecn`


def buffer(name: str) -> Queue:
    """The paper's two queues; any other discipline with the same buffer."""
    if name == "codel":
        return Queue("codel", limit_packets=CODEL_PACKETS, ecn=True, options={"target_ms": 10})
    ecn = name in DISCIPLINES and DISCIPLINES[name].ecn
    return Queue(name, limit_bytes=BUFFER_BYTES, ecn=ecn)


def scenario(
    *, variant: str, queue: str, rate_mbit: float, delay_ms: float, duration_s: float, seed: int
) -> Scenario:
    """One trial."""
    return Scenario(
        experiment="router-bottleneck",
        label=f"{variant}-{queue}",
        topology=Topology(
            TopologyKind.ROUTER_BOTTLENECK,
            Bottleneck(rate_mbit, buffer(queue), both_directions=True),
            access=Path(delay_ms=delay_ms),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant),),
        duration_s=duration_s,
        seed=seed,
    )


EXPERIMENT = Experiment(
    name="router-bottleneck",
    paper="GYS 2.1",
    about="one flow of each variant through a router of 1 Mbit/s with 0.1 MB of buffer",
    axes={
        "variant": ("linux-reno", "cubic", "vegas", "bbr", "veno"),
        "queue": ("bfifo",),
        "rate_mbit": (1.0,),
        "delay_ms": (0.0,),
        "duration_s": (60.0,),
    },
    build=scenario,
    figures=plots.router_bottleneck,
    quick={"duration_s": (20.0,)},
)

if __name__ == "__main__":
    from testbed.cli import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]]))
