#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Every variant alone on the same path: its throughput, its losses, its delays.

    sender1 ── router ── receiver

10 Mbit/s, a round-trip time of 60 ms, and a buffer of 20 packets, which is two fifths of the
bandwidth–delay product. 60 s per flow, no other traffic. The buffer drops and never marks, so
variants that go by marks (DCTCP) are not among them.
"""

from __future__ import annotations

import sys

from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Queue
from testbed.scenario.variants import VARIANTS

JITTER_MS = 100.0  # what a seed changes: the flow's start, and the delay within a packet's time


def scenario(
    *,
    variant: str,
    packets: float,
    rate_mbit: float,
    rtt_ms: float,
    duration_s: float,
    profile: str,
    seed: int,
) -> Scenario:
    """One trial."""
    return Scenario(
        experiment="variants",
        label=f"{variant}-{profile}",
        network=router_bottleneck(
            LinkSettings(rate_mbit, queue=Queue("pfifo", limit_packets=round(packets))),
            access=LinkSettings(delay_ms=rtt_ms / 2),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant),),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=JITTER_MS,
        drawn_service_times=1.0,
        profile=Profile(profile),
    )


EXPERIMENT = Experiment(
    name="variants",
    paper="",
    about="every variant alone: 10 Mbit/s, 60 ms, a buffer of 20 packets",
    axes={
        "variant": tuple(name for name, each in VARIANTS.items() if not each.by_marks),
        "packets": (20.0,),
        "rate_mbit": (10.0,),
        "rtt_ms": (60.0,),
        "duration_s": (60.0,),
        "profile": ("modern",),
    },
    build=scenario,
    quick={"duration_s": (15.0,)},
    figures=on_demand("experiments.all_variants_figures", "draw"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
