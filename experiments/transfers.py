#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Completion times: web-search transfers through one bottleneck, by variant and queue.

    sender1 ───── left ═══════════ right ───── receiver1
                     rate_mbit, 20 ms there and back

The receiver asks for thousands of transfers, by a Poisson process that fills the part `load` of the
bottleneck. Their sizes are those of a data centre that searches the web, times `scale`: a link of
50 Mbit/s sees them as one of 1 Gbit/s sees the real ones.
"""

from __future__ import annotations

import math
import sys

from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import PathSummary, Queue
from testbed.scenario.transfers import rate_per_s
from testbed.scenario.workload import Arrivals, Connections, Sizes, Workload

TRANSFERS_QUEUES = {
    "bfifo": Queue("bfifo", limit_bdp=1.0),
    "fq_codel": Queue("fq_codel", limit_packets=10_240),
}
PATH = PathSummary(50, 20)
LONGER = 1.1  # than the mean, and these seconds: a Poisson process may take longer
SETTLE_S = 5.0  # for the last transfers to end in


def scenario(
    *,
    variant: str,
    queue: str,
    connections: str,
    load: float,
    count: float,
    scale: float,
    seed: int,
) -> Scenario:
    """One trial."""
    workload = Workload(
        Arrivals(load=load),
        Sizes(scale=scale),
        Connections(connections),
        pool=50 if connections == Connections.KEPT else Workload.pool,
        count=int(count),
    )
    mean_s = count / rate_per_s(workload, PATH.rate_mbit)
    neck = LinkSettings(PATH.rate_mbit, queue=TRANSFERS_QUEUES[queue], delay_ms=PATH.rtt_ms / 2)
    return Scenario(
        experiment="transfers",
        label=f"{queue}-{variant}-{connections}-{load:g}-{count:g}x{scale:g}",
        network=dumbbell(neck),
        flows=(
            Flow(
                "web", FlowKind.WORKLOAD, "sender1", "receiver1", variant=variant, workload=workload
            ),
        ),
        duration_s=float(math.ceil(LONGER * mean_s + SETTLE_S)),
        seed=seed,
        drawn_service_times=1.0,
    )


EXPERIMENT = Experiment(
    name="transfers",
    paper="",
    about="completion times of web-search transfers, by variant and queue",
    axes={
        "variant": ("cubic", "bbr"),
        "queue": ("bfifo", "fq_codel"),
        "connections": ("new",),
        "load": (0.6,),
        "count": (5000.0,),
        "scale": (0.05,),
    },
    build=scenario,
    quick={"count": (500.0,)},
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
