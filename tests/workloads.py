"""Scenarios with workloads that the tests share."""

from __future__ import annotations

from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.workload import (
    Arrivals,
    Connections,
    Distribution,
    Process,
    Sizes,
    Workload,
)

SMALL = Sizes(Distribution.CONSTANT, mean_bytes=20_000)


def workload_scenario(
    workload: Workload, *, beside: bool = False, duration_s: float = 4.0, **settings: object
) -> Scenario:
    """A workload between the first pair of a dumbbell of 10 Mbit/s and 20 ms, with a long flow
    between the second pair if asked for."""
    flows = [
        Flow("web", FlowKind.WORKLOAD, "sender1", "receiver1", variant="cubic", workload=workload)
    ]
    if beside:
        flows.append(Flow("long", FlowKind.TCP, "sender2", "receiver2", variant="cubic"))
    return Scenario(
        experiment="test",
        network=dumbbell(
            LinkSettings(10, queue=Queue("bfifo", limit_bytes=50_000), delay_ms=10),
            pairs=len(flows),
        ),
        flows=tuple(flows),
        duration_s=duration_s,
        **settings,  # type: ignore[arg-type]
    )


def evenly(count: int) -> Workload:
    """So many transfers of 20 kB, ten a second, over connections of their own."""
    return Workload(Arrivals(Process.DETERMINISTIC, per_s=10), SMALL, count=count)


def kept(load: float = 0.5) -> Workload:
    """Transfers over four connections that stay open."""
    return Workload(Arrivals(load=load), SMALL, Connections.KEPT, pool=4)
