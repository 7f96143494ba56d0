#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Fall, Floyd 1996: one, two, three, four segments of a window are lost; what then?

    sender1 ── left ──── right ── receiver1

8 Mbit/s and 0.1 ms to the router, 0.8 Mbit/s and 100 ms behind it, buffers that never
overflow: nothing is lost but what the experiment drops. The window is 15 segments when
the first of them is lost, in slow start. What each variant's definition asks for is
below as data and compared with what the captures and the sockets show.
"""

from __future__ import annotations

import functools
import sys

from analysis.figures import plots
from analysis.figures.fall_floyd.outcome import Expected
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import (
    Bottleneck,
    Flow,
    FlowKind,
    Path,
    Profile,
    Queue,
    Scenario,
    Topology,
    TopologyKind,
)

# The paper's packets 14, 28; 14, 26, 28; …: it counts from 0.
LOST = {1: (15,), 2: (15, 29), 3: (15, 27, 29), 4: (15, 25, 27, 29)}
TIMEOUT = (3.0, 12.0)  # round trips: one of 0.2 s at least twice, and a timer of some 0.5 s

EXPECTED = {
    # the hole, then all behind it that no ACK has covered, in slow start
    "tahoe": tuple(Expected(0, 1, True, False, (1, lost)) for lost in LOST),
    # a recovery a loss, until too few duplicate ACKs come
    "reno": (
        Expected(0, 1, False, True, (1, 1)),
        Expected(0, 2, False, True, (2, 3)),
        Expected(1, 3, True, True, TIMEOUT),
        Expected(1, 3, True, False, TIMEOUT),
    ),
    # a loss a round trip, one recovery
    "newreno": tuple(Expected(0, 1, False, True, (lost, lost)) for lost in LOST),
    # the same as long as the timer, set at the first partial ACK, does not fire: two
    # round trips and a half
    "newreno-impatient": (
        *(Expected(0, 1, False, True, (lost, lost)) for lost in (1, 2, 3)),
        Expected(1, 2, True, False, (3, 5)),
    ),
    # all losses in one go, each known by three segments above it that arrived
    "sack": tuple(Expected(0, 1, False, True, (1, min(lost, 2))) for lost in LOST),
}


def scenario(*, variant: str, lost: float, profile: str, seed: int) -> Scenario:
    """One trial."""
    return Scenario(
        experiment="fall-floyd",
        label=f"{variant}-lost{lost:g}-{profile}",
        topology=Topology(
            TopologyKind.DUMBBELL,
            Bottleneck(0.8, Queue("pfifo", limit_packets=1000), delay_ms=100),
            access=Path(delay_ms=0.05, rate_mbit=8),
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
    about="one to four segments of a window are lost: what each variant does",
    axes={
        "variant": tuple(EXPECTED),
        "lost": tuple(map(float, LOST)),
        "profile": ("ns2",),
    },
    build=scenario,
    figures=plots.fall_floyd,
    table=functools.partial(plots.fall_floyd_table, expected=EXPECTED),
    quick={},
)

if __name__ == "__main__":
    from testbed.cli import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
