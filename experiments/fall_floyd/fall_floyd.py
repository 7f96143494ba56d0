#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Fall, Floyd 1996: one to four segments of a window are lost.

    sender1 ── left ──── right ── receiver1

8 Mbit/s and 0.1 ms to the router, 0.8 Mbit/s and 100 ms behind it, buffers that never
overflow: nothing is lost except what the experiment drops. The window is 15 segments when
the first of them is lost, in slow start. What the captures and the sockets show is compared
with each variant's definition.
"""

from __future__ import annotations

import sys

from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue

# The paper's packets 14, 28; 14, 26, 28; …: it counts from 0.
LOST = {1: (15,), 2: (15, 29), 3: (15, 27, 29), 4: (15, 25, 27, 29)}
RECOVERY_VARIANTS = ("tahoe", "reno", "newreno", "newreno-impatient", "sack")


def scenario(*, variant: str, lost: float, profile: str, seed: int) -> Scenario:
    """Lose segments of a variant's only flow."""
    return Scenario(
        experiment="fall-floyd",
        label=f"{variant}-lost{lost:g}-{profile}",
        network=dumbbell(
            LinkSettings(0.8, queue=Queue("pfifo", limit_packets=1000), delay_ms=100),
            access=LinkSettings(delay_ms=0.05, rate_mbit=8),
        ),
        flows=(
            Flow(
                "tcp",
                FlowKind.TCP,
                "sender1",
                "receiver1",
                variant=variant,
                drops=LOST[int(lost)],
            ),
        ),
        duration_s=6,
        seed=seed,
        profile=Profile(profile),
        sample_interval_ms=5,
    )


EXPERIMENT = Experiment(
    name="fall-floyd",
    paper="Fall, Floyd 1996",
    about="each variant's reaction to one to four lost segments in a window",
    axes={
        "variant": RECOVERY_VARIANTS,
        "lost": tuple(map(float, LOST)),
        "profile": ("ns2",),
    },
    build=scenario,
    quick={},
    figures=on_demand("experiments.fall_floyd.figures", "draw"),
    tables=on_demand("experiments.fall_floyd.outcomes", "sheets"),
    summary=on_demand("experiments.fall_floyd.outcomes", "expected_and_seen"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
