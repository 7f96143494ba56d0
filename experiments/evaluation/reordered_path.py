"""A path on which packets overtake others: 0.01 to 20 % of the data.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms

A packet that overtakes crosses the receiver's link, of 9 ms, at once, and with it the seven packets
that are on it when the bottleneck is full. Acknowledgements keep their order.
"""

from __future__ import annotations

import dataclasses

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.builders import graph_of
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Graph, Scenario

LAST = ("receiver1", "right")  # the data come back


def network(percent: float) -> Graph:
    """The dumbbell, with the chance on the way to the receiver."""
    graph = graph_of(settings.dumbbell(settings.buffer(settings.FIFO), 1))
    *others, last = graph.links
    assert last.ends == LAST
    data = dataclasses.replace(last.directions[1], reorder=percent / 100)
    return dataclasses.replace(graph, links=(*others, dataclasses.replace(last, back=data)))


def scenario(*, variant: str, reordered_percent: float, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    return settings.trial(
        "reordering",
        (variant, f"{reordered_percent:g}pc"),
        network(reordered_percent),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
    )


EXPERIMENT = Experiment(
    name="reordering",
    paper="RFC 9743, 7.7",
    about="packets that overtake others, 0.01 to 20 % of them: goodput, spurious retransmissions",
    axes={
        "variant": settings.VARIANTS,
        "reordered_percent": (0.01, 0.1, 1.0, 5.0, 20.0),
        "duration_s": (24.0,),
    },
    build=scenario,
    quick={"reordered_percent": (0.1, 5.0), "duration_s": (8.0,)},
    compares=("variant",),
)
